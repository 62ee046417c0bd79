// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/analysis/value_range.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "shardcall/partitioner/ir/row_by_opcode.h"

namespace shardcall {
inline namespace internal {
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
    const int64_t high =
        bits >= 64 ? std::numeric_limits<int64_t>::max() : (int64_t{1} << (bits - 1)) - 1;
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
      literal.data.size() < static_cast<size_t>(n) * ElementTypeBytes(shape.element_type())) {
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

// What a row's function asks of the operands.
class Finder {
 public:
  explicit Finder(const Module& m) : m_(m) {}

  const Module& module() const { return m_; }
  Range Find(InstrId id, int depth);
  Range Operand(const Instruction& i, int k, int depth) { return Find(m_.operands(i)[k], depth); }

 private:
  const Module& m_;
  int left_ = kMostOperands;
};

using RangeFunction = Range (*)(Finder& f, const Instruction& i, int depth);
struct RangeRow {
  Opcode opcode;
  RangeFunction range;
};

// Each element is one of the first operand's.
Range OfFirst(Finder& f, const Instruction& i, int depth) { return f.Operand(i, 0, depth); }

Range OfAny(Finder& f, const Instruction& i, int depth, size_t first) {
  Range all;
  for (InstrId o : f.module().operands(i).subspan(first)) {
    const Range x = f.Find(o, depth);
    if (!x) return std::nullopt;
    all = all ? Either(*all, *x) : *x;
  }
  return all;
}

// min(max(x, low), high), of which x may be unknown.
Range OfClamp(Finder& f, const Instruction& i, int depth) {
  const Range low = f.Operand(i, 0, depth), high = f.Operand(i, 2, depth);
  if (!low || !high) return std::nullopt;
  const Range x = f.Operand(i, 1, depth);
  return ValueRange{std::min(high->low, x ? std::max(x->low, low->low) : low->low),
                    std::min(high->high, x ? std::max(x->high, low->high) : high->high)};
}

template <Range (*combine)(const ValueRange&, const ValueRange&)>
Range OfBoth(Finder& f, const Instruction& i, int depth) {
  const Range x = f.Operand(i, 0, depth), y = f.Operand(i, 1, depth);
  return x && y ? combine(*x, *y) : std::nullopt;
}

Range Larger(const ValueRange& x, const ValueRange& y) {
  return ValueRange{std::max(x.low, y.low), std::max(x.high, y.high)};
}
Range Smaller(const ValueRange& x, const ValueRange& y) {
  return ValueRange{std::min(x.low, y.low), std::min(x.high, y.high)};
}
// By a positive number, towards zero.
Range Quotient(const ValueRange& x, const ValueRange& y) {
  if (y.low <= 0) return std::nullopt;
  return ValueRange{std::min(x.low / y.low, x.low / y.high),
                    std::max(x.high / y.low, x.high / y.high)};
}

Range OfRemainder(Finder& f, const Instruction& i, int depth) {
  const Range x = f.Operand(i, 0, depth), y = f.Operand(i, 1, depth);
  if (!y || y->low <= 0) return std::nullopt;
  const bool positive = !IsSignedInteger(i.shape->element_type()) || (x && x->low >= 0);
  return ValueRange{positive ? 0 : 1 - y->high, y->high - 1};
}

// No more than either operand that is not negative.
Range OfAnd(Finder& f, const Instruction& i, int depth) {
  Range x = f.Operand(i, 0, depth), y = f.Operand(i, 1, depth);
  if (!x || x->low < 0) std::swap(x, y);
  if (!x || x->low < 0) return std::nullopt;
  return ValueRange{0, y && y->low >= 0 ? std::min(x->high, y->high) : x->high};
}

Range OfShiftRight(Finder& f, const Instruction& i, int depth) {
  const Range x = f.Operand(i, 0, depth);
  return x && x->low >= 0 ? Range(ValueRange{0, x->high}) : std::nullopt;
}

// Ops without a row have no known range.
constexpr RangeRow kRanges[] = {
    {Opcode::kConstant,
     [](Finder&, const Instruction& i, int) { return OfLiteral(*i.as<ConstantAttrs>().literal); }},
    {Opcode::kPartitionId,
     [](Finder& f, const Instruction&, int) -> Range {
       return ValueRange{0, std::max<int64_t>(f.module().header.num_partitions, 1) - 1};
     }},
    {Opcode::kIota,
     [](Finder&, const Instruction& i, int) -> Range {
       return ValueRange{0, i.shape->dim(static_cast<int>(i.as<IotaAttrs>().dimension)) - 1};
     }},
    {Opcode::kConvert, OfFirst},
    {Opcode::kCopy, OfFirst},
    {Opcode::kReshape, OfFirst},
    {Opcode::kBroadcast, OfFirst},
    {Opcode::kTranspose, OfFirst},
    {Opcode::kReverse, OfFirst},
    {Opcode::kSlice, OfFirst},
    {Opcode::kDynamicSlice, OfFirst},
    {Opcode::kGather, OfFirst},
    {Opcode::kConcatenate,
     [](Finder& f, const Instruction& i, int depth) { return OfAny(f, i, depth, 0); }},
    {Opcode::kSelect,
     [](Finder& f, const Instruction& i, int depth) { return OfAny(f, i, depth, 1); }},
    {Opcode::kClamp, OfClamp},
    {Opcode::kAdd, OfBoth<Sum>},
    {Opcode::kSubtract, OfBoth<Difference>},
    {Opcode::kMultiply, OfBoth<Product>},
    {Opcode::kMaximum, OfBoth<Larger>},
    {Opcode::kMinimum, OfBoth<Smaller>},
    {Opcode::kDivide, OfBoth<Quotient>},
    {Opcode::kRemainder, OfRemainder},
    {Opcode::kAnd, OfAnd},
    {Opcode::kShiftRightLogical, OfShiftRight},
    {Opcode::kShiftRightArithmetic, OfShiftRight},
};

Range Finder::Find(InstrId id, int depth) {
  const Instruction& i = m_.instr(id);
  if (!i.shape->IsArray() || !IsInteger(i.shape->element_type()) || i.shape->num_elements() == 0) {
    return std::nullopt;
  }
  if (depth > kDepth || --left_ < 0) return std::nullopt;
  const RangeRow* const row = RowByOpcode(kRanges, i.opcode);
  return row ? Within(row->range(*this, i, depth + 1), i.shape->element_type()) : std::nullopt;
}

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

}  // namespace internal
}  // namespace shardcall
