// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/build/embed.h"

#include "shardcall/partitioner/ir/build/module_cloner.h"
#include "shardcall/partitioner/ir/build/unique_names.h"

namespace shardcall {
inline namespace internal {

CompId EmbedComputations(const Module& from, Module* into) {
  ModuleCloner cloner(from, into);
  cloner.KeepTexts();
  for (CompId c : ComputationPostOrder(from)) {
    const Computation& old = from.comp(c);
    cloner.Set(c, AddNamedComputation(old.name, into));
    into->mutable_comp(cloner.now(c)).execution_thread = old.execution_thread;
    for (InstrId id : old.instructions) cloner.Clone(id);
    cloner.SetRoot(c);
  }
  return cloner.now(from.entry());
}

}  // namespace internal
}  // namespace shardcall
