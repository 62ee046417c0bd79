// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/simplify/transposed_operands.h"

#include <array>
#include <cstdint>
#include <vector>

#include "absl/algorithm/container.h"

namespace shardcall {
inline namespace internal {
namespace {

using Dims = std::vector<int64_t>;

// The dimensions of one side of a product, in what is transposed.
struct Side {
  bool transposed = false;
  Dims batch, contracting;
};

// Whether the value is a parameter, or an element of one, maybe in another type.
bool IsParameter(const Module& m, InstrId id) {
  const auto hands_on = [&] {
    const Opcode op = m.instr(id).opcode;
    return op == Opcode::kConvert || op == Opcode::kCopy || op == Opcode::kGetTupleElement;
  };
  while (hands_on()) id = m.operand(id, 0);
  return m.instr(id).opcode == Opcode::kParameter;
}

Side SideOf(const Module& m, InstrId operand, absl::Span<const int64_t> batch,
            absl::Span<const int64_t> contracting) {
  Side side{false, Dims(batch.begin(), batch.end()), Dims(contracting.begin(), contracting.end())};
  const Instruction& i = m.instr(operand);
  if (i.opcode != Opcode::kTranspose || i.sharding != nullptr || i.frontend != nullptr ||
      !IsParameter(m, m.operand(operand, 0))) {
    return side;
  }
  const absl::Span<const int64_t> from = i.as<DimensionsAttrs>().dimensions;
  int64_t last = -1;
  for (int64_t d = 0; d < i.shape->rank(); ++d) {
    if (absl::c_linear_search(batch, d) || absl::c_linear_search(contracting, d)) continue;
    if (from[d] < last) return side;  // in another order in the result
    last = from[d];
  }
  side.transposed = true;
  for (int64_t& d : side.batch) d = from[d];
  for (int64_t& d : side.contracting) d = from[d];
  return side;
}

}  // namespace

std::optional<CallExpansion> ReadDotOfTransposed(const Module& m, InstrId id) {
  const auto operands = m.operands(id);
  const auto& attrs = m.instr(id).as<DotAttrs>();
  if (operands.size() != 2 || !attrs.lhs_ragged.empty()) return std::nullopt;
  const std::array<Side, 2> sides = {
      SideOf(m, operands[0], attrs.lhs_batch, attrs.lhs_contracting),
      SideOf(m, operands[1], attrs.rhs_batch, attrs.rhs_contracting)};
  if (!sides[0].transposed && !sides[1].transposed) return std::nullopt;
  const auto of = [&](int k) {
    return sides[k].transposed ? m.operand(operands[k], 0) : operands[k];
  };
  if (of(0) == of(1)) return std::nullopt;
  const Shape* const result = m.instr(id).shape;
  return CallExpansion{
      {result}, [result, sides, &attrs](GraphBuilder& b, absl::Span<const InstrId> given) {
        DotAttrs straight = attrs;
        straight.lhs_batch = sides[0].batch;
        straight.lhs_contracting = sides[0].contracting;
        straight.rhs_batch = sides[1].batch;
        straight.rhs_contracting = sides[1].contracting;
        std::array<InstrId, 2> of;
        for (int k = 0; k < 2; ++k) {
          of[k] = sides[k].transposed ? b.module().operand(given[k], 0) : given[k];
        }
        return std::vector<InstrId>{b.Dot(of[0], of[1], straight, result->element_type())};
      }};
}

}  // namespace internal
}  // namespace shardcall
