// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/build/rewritten.h"

namespace shardcall {
inline namespace internal {

Rewritten RewriteOps(const Module& m,
                     absl::FunctionRef<bool(InstrId, GraphBuilder&, ModuleCloner&)> make) {
  Rewritten out(Module(m.shared_context()));
  ModuleCloner cloner(m, &out.module);
  MonoidTable monoids(&out.module);
  cloner.CopyHeader();
  for (int c = 0; c < m.num_computations(); ++c) cloner.AddComputation(CompId(c));
  // A map's computation has to be whole when the map is made.
  for (const CompId c : ComputationPostOrder(m)) {
    GraphBuilder b(&out.module, cloner.now(c), &monoids);
    b.set_value_numbering(false);
    for (const InstrId id : m.comp(c).instructions) {
      if (!make(id, b, cloner)) cloner.Clone(id);
      out.made_for.resize(out.module.num_instructions(), id);
    }
    cloner.SetRoot(c);
  }
  out.module.set_entry(cloner.now(m.entry()));
  out.moved_to = cloner.TakeInstructions();
  return out;
}

}  // namespace internal
}  // namespace shardcall
