// SPDX-License-Identifier: Apache-2.0
// XLA lays the operand and the result of a gather out so that each device's part is one piece:
//   before:  g = f32[8,32] all-gather(f32[8,4] x), dimensions={1}
//   after:   g = f32[8,32] transpose(f32[32,8] all-gather(f32[4,8] transpose(x)), dimensions={0})
#include "shardcall/partitioner/pass/backend/backend_passes.h"
#include "shardcall/partitioner/pass/rewrite.h"

namespace shardcall {
inline namespace internal {
namespace {

bool GathersInside(const Instruction& i) {
  return (i.opcode == Opcode::kAllGather || i.opcode == Opcode::kReduceScatter) &&
         i.shape->IsArray() && i.operand_count == 1 && i.as<CollectiveAttrs>().dimension > 0;
}

// The permutation that puts `d` first, or that which undoes it.
absl::InlinedVector<int64_t, 6> Permutation(int64_t d, int64_t rank, bool back) {
  absl::InlinedVector<int64_t, 6> out;
  for (int64_t k = 0; k < rank; ++k) {
    if (back) {
      out.push_back(k == d ? 0 : k < d ? k + 1 : k);
    } else {
      out.push_back(k == 0 ? d : k <= d ? k - 1 : k);
    }
  }
  return out;
}

void MakeGather(const Module& m, InstrId id, GraphBuilder& b, ModuleCloner* cloner) {
  const Instruction& i = m.instr(id);
  CollectiveAttrs attrs = cloner->CopyOf(id).as<CollectiveAttrs>();
  const int64_t d = attrs.dimension, rank = i.shape->rank();
  attrs.dimension = 0;
  const InstrId x = b.Transpose(cloner->OperandsOf(id)[0], Permutation(d, rank, false));
  absl::InlinedVector<int64_t, 6> dims(i.shape->dims().begin(), i.shape->dims().end());
  dims.erase(dims.begin() + d);
  dims.insert(dims.begin(), i.shape->dims()[d]);
  Instruction copy = cloner->CopyOf(id);
  copy.attrs = InternAttributes(b.context(), attrs);
  copy.shape = b.context().WithDefaultLayout(b.context().MakeArray(i.shape->element_type(), dims));
  const InstrId now = cloner->Add(id, copy, {x}, b.computation());
  cloner->CopyRare(id, now);
  cloner->Set(id, b.Transpose(now, Permutation(d, rank, true)));
}

}  // namespace

PassResult PutGatheredDimensionFirst(const Module& m) {
  return RewriteInstructions(
      m, [&](InstrId id) { return GathersInside(m.instr(id)); },
      [&](InstrId id, GraphBuilder& b, ModuleCloner* cloner) { MakeGather(m, id, b, cloner); });
}

}  // namespace internal
}  // namespace shardcall
