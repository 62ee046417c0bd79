// SPDX-License-Identifier: Apache-2.0
//   before:  y = f32[8,4] transpose(f32[4,8] dot(a, b)), dimensions={1,0}
//   after:   y = f32[8,4] dot(b, a)
#include <utility>

#include "shardcall/partitioner/pass/backend/backend_passes.h"
#include "shardcall/partitioner/pass/rewrite.h"

namespace shardcall {
inline namespace internal {
namespace {

// Whether the transpose puts the free dimensions of the right operand, in their order, between the
// batch and the free dimensions of the left one.
bool Swaps(const Module& m, InstrId id, const std::vector<int>& users) {
  if (m.instr(id).opcode != Opcode::kTranspose) return false;
  const InstrId dot = m.operand(id, 0);
  if (m.instr(dot).opcode != Opcode::kDot || users[dot.value] != 1) return false;
  const DotAttrs& a = m.instr(dot).as<DotAttrs>();
  const auto batch = static_cast<int64_t>(a.lhs_batch.size());
  const int64_t left = m.instr(m.operand(dot, 0)).shape->rank() - batch -
                       static_cast<int64_t>(a.lhs_contracting.size());
  const absl::Span<const int64_t> permutation = m.instr(id).as<DimensionsAttrs>().dimensions;
  const auto rank = static_cast<int64_t>(permutation.size());
  const int64_t right = rank - batch - left;
  for (int64_t d = 0; d < rank; ++d) {
    const int64_t from = d < batch ? d : d < batch + right ? d + left : d - right;
    if (permutation[d] != from) return false;
  }
  return left > 0 && right > 0;
}

}  // namespace

PassResult SwapTransposedProducts(const Module& m) {
  std::vector<int> users(m.num_instructions());
  for (int k = 0; k < m.num_instructions(); ++k) {
    for (const InstrId o : m.operands(InstrId(k))) ++users[o.value];
  }
  return RewriteInstructions(
      m, [&](InstrId id) { return Swaps(m, id, users); },
      [&](InstrId id, GraphBuilder& b, ModuleCloner* cloner) {
        const InstrId dot = m.operand(id, 0);
        Instruction copy = cloner->CopyOf(dot);
        DotAttrs attrs = copy.as<DotAttrs>();
        std::swap(attrs.lhs_batch, attrs.rhs_batch);
        std::swap(attrs.lhs_contracting, attrs.rhs_contracting);
        copy.attrs = InternAttributes(b.context(), attrs);
        copy.shape = m.instr(id).shape;
        auto operands = cloner->OperandsOf(dot);
        std::swap(operands[0], operands[1]);
        cloner->Add(id, copy, operands, b.computation());
      });
}

}  // namespace internal
}  // namespace shardcall
