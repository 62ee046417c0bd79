// SPDX-License-Identifier: Apache-2.0
// A module made from another one, and what came of its instructions.
#ifndef SHARDCALL_PARTITIONER_IR_BUILD_REWRITTEN_H_
#define SHARDCALL_PARTITIONER_IR_BUILD_REWRITTEN_H_

#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "shardcall/partitioner/ir/build/builder.h"
#include "shardcall/partitioner/ir/build/module_cloner.h"
#include "shardcall/partitioner/ir/module.h"

namespace shardcall {
inline namespace internal {

struct Rewritten {
  explicit Rewritten(Module m) : module(std::move(m)) {}
  Module module;
  std::vector<InstrId> moved_to;  // by old instruction; invalid if it has no copy
  std::vector<InstrId> made_for;  // by new instruction: the old one
};

// A copy of the module in which `make` makes instructions anew: it gets the old one and must give
// the cloner its copy, in the builder's computation; for one that is to be cloned it returns false.
// Computations keep their ids. The builder numbers no values: what is annotated, or will be, is a
// value of its own, also where two are equal.
Rewritten RewriteOps(const Module& module,
                     absl::FunctionRef<bool(InstrId, GraphBuilder&, ModuleCloner&)> make);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_BUILD_REWRITTEN_H_
