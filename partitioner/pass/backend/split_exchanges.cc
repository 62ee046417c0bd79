// SPDX-License-Identifier: Apache-2.0
//   before:  y = f32[8,4] all-to-all(x), dimensions={0}
//   after:   t = (f32[4,4], f32[4,4]) all-to-all(slice(x), slice(x)),  y = concatenate(t0, t1)
#include "shardcall/partitioner/ir/shapes/shape_inference.h"
#include "shardcall/partitioner/pass/backend/backend_passes.h"
#include "shardcall/partitioner/pass/rewrite.h"

namespace shardcall {
inline namespace internal {
namespace {

// More parts are left together: a program does not grow with its devices.
constexpr int64_t kMostParts = 64;

bool ConcernsExchange(const Module& m, InstrId id) {
  const Instruction& i = m.instr(id);
  if (i.opcode != Opcode::kAllToAll || !i.shape->IsArray() || i.operand_count != 1) return false;
  const CollectiveAttrs& attrs = i.as<CollectiveAttrs>();
  return attrs.dimension >= 0 && CollectiveGroupSize(m, i.opcode, attrs) <= kMostParts;
}

void MakeExchange(const Module& m, InstrId id, GraphBuilder& b, ModuleCloner* cloner) {
  const Instruction& i = m.instr(id);
  CollectiveAttrs attrs = cloner->CopyOf(id).as<CollectiveAttrs>();
  const int64_t d = attrs.dimension, parts = CollectiveGroupSize(m, i.opcode, attrs);
  attrs.dimension = -1;
  const InstrId x = cloner->OperandsOf(id)[0];
  const int64_t size = i.shape->dims()[d] / parts;
  absl::InlinedVector<int64_t, 6> starts(i.shape->rank()),
      limits(i.shape->dims().begin(), i.shape->dims().end());
  std::vector<InstrId> slices;
  for (int64_t k = 0; k < parts; ++k) {
    starts[d] = k * size;
    limits[d] = (k + 1) * size;
    slices.push_back(b.Slice(x, starts, limits));
  }
  Instruction copy = cloner->CopyOf(id);
  copy.attrs = InternAttributes(b.context(), attrs);
  copy.shape = b.context().MakeTuple(std::vector<const Shape*>(parts, b.shape(slices[0])));
  const InstrId now = cloner->Add(id, copy, slices, b.computation());
  cloner->CopyRare(id, now);
  for (int64_t k = 0; k < parts; ++k) slices[k] = b.GetTupleElement(now, k);
  cloner->Set(id, b.Concatenate(slices, d));
}

}  // namespace

PassResult SplitExchanges(const Module& m) {
  return RewriteInstructions(
      m, [&](InstrId id) { return ConcernsExchange(m, id); },
      [&](InstrId id, GraphBuilder& b, ModuleCloner* cloner) { MakeExchange(m, id, b, cloner); });
}

}  // namespace internal
}  // namespace shardcall
