// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/analysis/value_range.h"

#include <algorithm>
#include <cstring>
#include <limits>

namespace shardcall::inline internal {
namespace {

using Range = std::optional<ValueRange>;

// Chains of index arithmetic are short; longer ones count as unknown.
constexpr int kMostOperands = 64;
constexpr int kDepth = 24;
// Tables of indices are small; larger constants are not read.
constexpr int64_t kMostElements = 1 << 16;

// The numbers of an integer type; those of u64 beyond int64 are left out by `Within`.
Range OfType(ElementType type) {
  if (!IsInteger(type)) return std::nullopt;
  const int bits = ElementTypeBits(type);
  if (IsSignedInteger(type)) {
    const int64_t high = bits >= 64 ? std::numeric_limits<int64_t>::max()
                                    : (int64_t{1} << (bits - 1)) - 1;
    return ValueRange{-high - 1, high};
  }
  return ValueRange{0, bits >= 63 ? std::numeric_limits<int64_t>::max() : (int64_t{1} << bits) - 1};
}

// `range` if every number of it is one of `type`: then nothing wrapped around.
Range Within(Range range, ElementType type) {
  const Range all = OfType(type);
  if (!range || !all || range->low < all->low || range->high > all->high) return std::nullopt;
  return range;
}

Range OfLiteral(const Literal& literal) {
  const Shape& shape = *literal.shape;
  if (literal.elided || !shape.IsArray() || !IsInteger(shape.element_type())) return std::nullopt;
  const int64_t n = shape.num_elements();
  if (n == 0 || n > kMostElements ||
      literal.data.size() <
                    static_cast<size_t>(n) * ElementTypeBytes(shape.element_type())) {
    return std::nullopt;
  }
  ValueRange range{IntegerAt(literal, 0), IntegerAt(literal, 0)};
  for (int64_t k = 1; k < n; ++k) {
    range.low = std::min(range.low, IntegerAt(literal, k));
    range.high = std::max(range.high, IntegerAt(literal, k));
  }
  // A number of u64 beyond int64 reads as a negative one.
  return Within(range, shape.element_type());
}

Range Product(const ValueRange& x, const ValueRange& y) {
  ValueRange out{std::numeric_limits<int64_t>::max(), std::numeric_limits<int64_t>::min()};
  for (int64_t a : {x.low, x.high}) {
    for (int64_t b : {y.low, y.high}) {
      int64_t product;
      if (__builtin_mul_overflow(a, b, &product)) return std::nullopt;
      out = {std::min(out.low, product), std::max(out.high, product)};
    }
  }
  return out;
}

Range Sum(const ValueRange& x, const ValueRange& y) {
  ValueRange out;
  if (__builtin_add_overflow(x.low, y.low, &out.low) ||
      __builtin_add_overflow(x.high, y.high, &out.high)) {
    return std::nullopt;
  }
  return out;
}

Range Difference(const ValueRange& x, const ValueRange& y) {
  ValueRange out;
  if (__builtin_sub_overflow(x.low, y.high, &out.low) ||
      __builtin_sub_overflow(x.high, y.low, &out.high)) {
    return std::nullopt;
  }
  return out;
}

ValueRange Either(const ValueRange& x, const ValueRange& y) {
  return {std::min(x.low, y.low), std::max(x.high, y.high)};
}

class Finder {
 public:
  explicit Finder(const Module& m) : m_(m) {}

  Range Find(InstrId id, int depth) {
    const Instruction& i = m_.instr(id);
    if (!i.shape->IsArray() || !IsInteger(i.shape->element_type()) ||
        i.shape->num_elements() == 0) {
      return std::nullopt;
    }
    if (depth > kDepth || --left_ < 0) return std::nullopt;
    return Within(Op(i, depth + 1), i.shape->element_type());
  }

 private:
  Range Operand(const Instruction& i, int k, int depth) { return Find(m_.operands(i)[k], depth); }

  Range Op(const Instruction& i, int depth) {
    switch (i.opcode) {
      case Opcode::kConstant:
        return OfLiteral(*i.as<ConstantAttrs>().literal);
      case Opcode::kPartitionId:
        return ValueRange{0, std::max<int64_t>(m_.header.num_partitions, 1) - 1};
      case Opcode::kIota:
        return ValueRange{
            0, i.shape->dim(static_cast<int>(i.as<IotaAttrs>().dimension)) - 1};
      // Each element is one of the operand's.
      case Opcode::kConvert:
      case Opcode::kCopy:
      case Opcode::kReshape:
      case Opcode::kBroadcast:
      case Opcode::kTranspose:
      case Opcode::kReverse:
      case Opcode::kSlice:
      case Opcode::kDynamicSlice:
      case Opcode::kGather:
        return Operand(i, 0, depth);
      case Opcode::kSelect: {
        const Range x = Operand(i, 1, depth), y = Operand(i, 2, depth);
        return x && y ? Range(Either(*x, *y)) : std::nullopt;
      }
      case Opcode::kConcatenate: {
        Range all;
        for (InstrId o : m_.operands(i)) {
          const Range x = Find(o, depth);
          if (!x) return std::nullopt;
          all = all ? Either(*all, *x) : *x;
        }
        return all;
      }
      case Opcode::kClamp:
        return Clamp(i, depth);
      default:
        return m_.operands(i).size() == 2 ? Binary(i, depth) : std::nullopt;
    }
  }

  // max(low, min(x, high)), of which x may be unknown. Element types are equal.
  Range Clamp(const Instruction& i, int depth) {
    const Range low = Operand(i, 0, depth), high = Operand(i, 2, depth);
    if (!low || !high) return std::nullopt;
    const Range x = Operand(i, 1, depth);
    return ValueRange{std::max(low->low, x ? std::min(x->low, high->low) : low->low),
                      std::max(low->high, x ? std::min(x->high, high->high) : high->high)};
  }

  Range Binary(const Instruction& i, int depth) {
    const Range x = Operand(i, 0, depth), y = Operand(i, 1, depth);
    const bool unsigned_ = !IsSignedInteger(i.shape->element_type());
    switch (i.opcode) {
      case Opcode::kAdd:
        return x && y ? Sum(*x, *y) : std::nullopt;
      case Opcode::kSubtract:
        return x && y ? Difference(*x, *y) : std::nullopt;
      case Opcode::kMultiply:
        return x && y ? Product(*x, *y) : std::nullopt;
      case Opcode::kMaximum:
        return x && y ? Range(ValueRange{std::max(x->low, y->low), std::max(x->high, y->high)})
                      : std::nullopt;
      case Opcode::kMinimum:
        return x && y ? Range(ValueRange{std::min(x->low, y->low), std::min(x->high, y->high)})
                      : std::nullopt;
      case Opcode::kDivide:
        if (!x || !y || y->low <= 0) return std::nullopt;
        return ValueRange{std::min(x->low / y->low, x->low / y->high),
                          std::max(x->high / y->low, x->high / y->high)};
      case Opcode::kRemainder:
        if (!y || y->low <= 0) return std::nullopt;
        return ValueRange{unsigned_ || (x && x->low >= 0) ? 0 : 1 - y->high, y->high - 1};
      case Opcode::kAnd:  // of numbers that are not negative: no more than either
        if (x && x->low >= 0) return ValueRange{0, y && y->low >= 0 ? std::min(x->high, y->high)
                                                                    : x->high};
        return y && y->low >= 0 ? Range(ValueRange{0, y->high}) : std::nullopt;
      case Opcode::kShiftRightLogical:
      case Opcode::kShiftRightArithmetic:
        return x && x->low >= 0 ? Range(ValueRange{0, x->high}) : std::nullopt;
      default:
        return std::nullopt;
    }
  }

  const Module& m_;
  int left_ = kMostOperands;
};

}  // namespace

std::optional<ValueRange> RangeOf(const Module& module, InstrId id) {
  return Finder(module).Find(id, 0);
}

int64_t IntegerAt(const Literal& literal, int64_t k) {
  const ElementType type = literal.shape->element_type();
  const size_t n = ElementTypeBytes(type);
  uint64_t bits = 0;
  std::memcpy(&bits, literal.data.data() + static_cast<size_t>(k) * n, n);
  if (IsSignedInteger(type) && n < 8 && (bits >> (8 * n - 1) & 1)) {
    bits |= ~uint64_t{0} << (8 * n);
  }
  return static_cast<int64_t>(bits);
}

}  // namespace shardcall::inline internal
