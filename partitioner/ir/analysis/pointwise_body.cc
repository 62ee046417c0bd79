// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/analysis/pointwise_body.h"

#include "absl/algorithm/container.h"

namespace shardcall {
inline namespace internal {
namespace {

bool IsPointwise(const Module& m, const Computation& c, InstrId id) {
  const Instruction& i = m.instr(id);
  if (HasTrait(i.opcode, kElementwise) || i.opcode == Opcode::kParameter) return true;
  if (i.opcode == Opcode::kConstant) return i.shape->IsArray() && i.shape->rank() == 0;
  if (i.opcode == Opcode::kBroadcast) return m.instr(m.operand(id, 0)).shape->rank() == 0;
  return i.opcode == Opcode::kTuple && id == c.root;
}

}  // namespace

bool IsPointwiseBody(const Module& m, CompId computation, absl::Span<const int64_t> dims) {
  if (!computation.valid()) return false;
  const Computation& c = m.comp(computation);
  return absl::c_all_of(c.instructions, [&](InstrId id) {
    const Shape* shape = m.instr(id).shape;
    for (int k = 0; k < shape->num_leaves(); ++k) {
      const Shape* leaf = shape->leaf(k);
      if (!leaf->IsArray() || leaf->IsDynamic()) return false;
      if (leaf->rank() > 0 && leaf->dims() != dims) return false;
    }
    return IsPointwise(m, c, id);
  });
}

}  // namespace internal
}  // namespace shardcall
