// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/pass/rewrite.h"

#include <utility>
#include <vector>

#include "absl/algorithm/container.h"

namespace shardcall::inline internal {

PassResult RewriteInstructions(
    const Module& m, absl::FunctionRef<bool(InstrId)> concerns,
    absl::FunctionRef<void(InstrId, GraphBuilder& b, ModuleCloner* cloner)> make) {
  PassResult out((Module(m.shared_context())));
  std::vector<bool> concerned(m.num_instructions());
  for (int k = 0; k < m.num_instructions(); ++k) concerned[k] = concerns(InstrId(k));
  out.changed = absl::c_linear_search(concerned, true);
  if (!out.changed) return out;
  ModuleCloner cloner(m, &out.module);
  MonoidTable monoids(&out.module);
  cloner.CopyHeader();
  for (int c = 0; c < m.num_computations(); ++c) cloner.AddComputation(CompId(c));
  // A map's computation has to be whole when the map is made.
  for (const CompId c : ComputationPostOrder(m)) {
    GraphBuilder b(&out.module, cloner.now(c), &monoids);
    for (InstrId id : m.comp(c).instructions) {
      if (!concerned[id.value]) {
        cloner.Clone(id);
        continue;
      }
      b.set_metadata(m.instr(id).metadata);
      make(id, b, &cloner);
    }
    cloner.SetRoot(c);
  }
  out.module.set_entry(cloner.now(m.entry()));
  out.moved_to = cloner.TakeInstructions();
  out.comp_moved_to = cloner.TakeComputations();
  return out;
}

}  // namespace shardcall::inline internal
