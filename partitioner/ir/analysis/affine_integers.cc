// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/analysis/affine_integers.h"

#include <algorithm>

#include "shardcall/partitioner/ir/analysis/value_range.h"

namespace shardcall {
inline namespace internal {

std::optional<int64_t> NumberOf(const Module& m, InstrId id) {
  const std::optional<ValueRange> range = RangeOf(m, id);
  if (!range.has_value() || range->low != range->high) return std::nullopt;
  return range->low;
}

namespace {

constexpr int kMostSteps = 12;

// The only dimension with several elements; -1 if there are more or none.
int LongDim(const Shape& shape) {
  int found = -1;
  for (int d = 0; d < shape.rank(); ++d) {
    if (shape.dim(d) == 1) continue;
    if (found >= 0) return -1;
    found = d;
  }
  return found;
}

std::optional<Progression> OfLiteral(const Literal& literal, const Shape& shape) {
  const int dim = LongDim(shape);
  if (literal.elided || dim < 0) return std::nullopt;
  const int64_t first = IntegerAt(literal, 0), step = IntegerAt(literal, 1) - first;
  for (int64_t k = 2; k < shape.dim(dim); ++k) {
    if (IntegerAt(literal, k) != first + step * k) return std::nullopt;
  }
  return Progression{dim, first, step};
}

// The dimension of `to` that dimension d of `from` becomes in a reshape that only adds and removes
// dimensions of one element; -1 if the reshape is another one.
int AfterReshape(const Shape& from, const Shape& to, int d) {
  int found = -1;
  for (int a = 0, b = 0; true; ++a, ++b) {
    while (a < from.rank() && from.dim(a) == 1) ++a;
    while (b < to.rank() && to.dim(b) == 1) ++b;
    if (a == from.rank() || b == to.rank()) return a == from.rank() && b == to.rank() ? found : -1;
    if (from.dim(a) != to.dim(b)) return -1;
    if (a == d) found = b;
  }
}

// Whether `id` is x < n for numbers that are all at least n.
bool AreNotLess(const Module& m, InstrId id) {
  const Instruction& i = m.instr(id);
  if (i.opcode != Opcode::kCompare || i.as<CompareAttrs>().direction != Direction::kLt) {
    return false;
  }
  const std::optional<ValueRange> x = RangeOf(m, m.operand(id, 0));
  const std::optional<int64_t> n = NumberOf(m, m.operand(id, 1));
  return x.has_value() && n.has_value() && x->low >= *n;
}

std::optional<Progression> Find(const Module& m, InstrId id, int depth);

// Of a sum, a difference or a product of a progression and a number.
std::optional<Progression> OfArithmetic(const Module& m, const Instruction& i, int depth) {
  const auto operands = m.operands(i);
  const std::optional<int64_t> left = NumberOf(m, operands[0]), right = NumberOf(m, operands[1]);
  if (!left.has_value() == !right.has_value()) return std::nullopt;
  const std::optional<Progression> x = Find(m, operands[left.has_value() ? 1 : 0], depth - 1);
  if (!x.has_value()) return std::nullopt;
  const int64_t n = left.has_value() ? *left : *right;
  if (i.opcode == Opcode::kAdd) return Progression{x->dim, x->first + n, x->step};
  if (i.opcode == Opcode::kMultiply) return Progression{x->dim, x->first * n, x->step * n};
  if (left.has_value()) return Progression{x->dim, n - x->first, -x->step};
  return Progression{x->dim, x->first - n, x->step};
}

std::optional<Progression> Find(const Module& m, InstrId id, int depth) {
  const Instruction& i = m.instr(id);
  if (depth == 0 || !i.shape->IsArray() || i.shape->IsDynamic()) return std::nullopt;
  // Arithmetic that may leave the type wraps around, and has no range.
  const std::optional<ValueRange> range = RangeOf(m, id);
  if (!range.has_value()) return std::nullopt;
  const auto operands = m.operands(i);
  if (i.opcode == Opcode::kConstant) return OfLiteral(*i.as<ConstantAttrs>().literal, *i.shape);
  if (i.opcode == Opcode::kIota) {
    return Progression{static_cast<int>(i.as<IotaAttrs>().dimension), 0, 1};
  }
  if (i.opcode == Opcode::kCopy || i.opcode == Opcode::kConvert) {
    return Find(m, operands[0], depth - 1);
  }
  if (i.opcode == Opcode::kReshape || i.opcode == Opcode::kBroadcast) {
    std::optional<Progression> x = Find(m, operands[0], depth - 1);
    if (!x.has_value()) return x;
    const bool reshape = i.opcode == Opcode::kReshape;
    x->dim = reshape ? AfterReshape(*m.instr(operands[0]).shape, *i.shape, x->dim)
                     : static_cast<int>(i.as<DimensionsAttrs>().dimensions[x->dim]);
    return x->dim < 0 ? std::nullopt : x;
  }
  if (i.opcode == Opcode::kAdd || i.opcode == Opcode::kSubtract || i.opcode == Opcode::kMultiply) {
    return OfArithmetic(m, i, depth);
  }
  // Negative indices count from the end: select(i < 0, i + n, i).
  if (i.opcode == Opcode::kSelect && AreNotLess(m, operands[0])) {
    return Find(m, operands[2], depth - 1);
  }
  return std::nullopt;
}

}  // namespace

std::optional<Progression> ProgressionOf(const Module& m, InstrId id) {
  return Find(m, id, kMostSteps);
}

bool AppendConstants(const Module& m, InstrId id, std::vector<int64_t>* out) {
  const Instruction& i = m.instr(id);
  if (!i.shape->IsArray() || i.shape->IsDynamic()) return false;
  const int64_t count = i.shape->num_elements();
  if (const std::optional<int64_t> number = NumberOf(m, id); number.has_value()) {
    out->insert(out->end(), count, *number);
    return true;
  }
  const auto operands = m.operands(i);
  if (i.opcode == Opcode::kConstant) {
    const Literal& literal = *i.as<ConstantAttrs>().literal;
    if (literal.elided || !RangeOf(m, id).has_value()) return false;
    for (int64_t k = 0; k < count; ++k) out->push_back(IntegerAt(literal, k));
    return true;
  }
  if (i.opcode == Opcode::kReshape || i.opcode == Opcode::kCopy) {
    return AppendConstants(m, operands[0], out);
  }
  if (i.opcode == Opcode::kConcatenate) {
    // In their order only if the dimensions before the concatenated one have one element.
    for (int d = 0; d < i.as<DimensionsAttrs>().dimensions[0]; ++d) {
      if (i.shape->dim(d) != 1) return false;
    }
    return std::all_of(operands.begin(), operands.end(),
                       [&](InstrId o) { return AppendConstants(m, o, out); });
  }
  return false;
}

}  // namespace internal
}  // namespace shardcall
