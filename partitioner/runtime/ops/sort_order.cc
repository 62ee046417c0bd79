// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/runtime/ops/sort_order.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/numeric/bits.h"

namespace shardcall {
inline namespace internal {
namespace {

// Whether two scalars are the same function, one of parameter 2k and the other of 2k + 1.
class Mirror {
 public:
  explicit Mirror(const Module& module) : m_(module) {}

  bool Same(InstrId a, InstrId b) {
    const Instruction& x = m_.instr(a);
    const Instruction& y = m_.instr(b);
    if (x.opcode == Opcode::kParameter || y.opcode == Opcode::kParameter) {
      if (x.opcode != y.opcode) return false;
      const int64_t p = x.as<ParameterAttrs>().number, q = y.as<ParameterAttrs>().number;
      if (p / 2 != q / 2 || p == q) return false;
      (p < q ? straight : crossed) = true;
      return true;
    }
    if (x.opcode != y.opcode || x.attrs != y.attrs || x.shape->bare() != y.shape->bare() ||
        x.operand_count != y.operand_count || HasTrait(x.opcode, kCallsComputation)) {
      return false;
    }
    if (!seen_.insert({a, b}).second) return true;
    for (uint32_t k = 0; k < x.operand_count; ++k) {
      const int at = static_cast<int>(k);
      if (!Same(m_.operand(a, at), m_.operand(b, at))) return false;
    }
    return true;
  }

  bool straight = false, crossed = false;

 private:
  const Module& m_;
  absl::flat_hash_set<std::pair<InstrId, InstrId>> seen_;
};

void RadixSort(std::vector<uint64_t>& values, int64_t n, int low_bit, int bits) {
  constexpr int kDigit = 8;
  uint64_t* from = values.data();
  uint64_t* to = from + n;
  for (int shift = low_bit; shift < low_bit + bits; shift += kDigit) {
    std::array<int64_t, 1 << kDigit> start{};
    for (int64_t i = 0; i < n; ++i) ++start[from[i] >> shift & 0xff];
    // Skip a digit that is the same in all keys.
    if (start[from[0] >> shift & 0xff] == n) continue;
    int64_t at = 0;
    for (int64_t& s : start) at += std::exchange(s, at);
    for (int64_t i = 0; i < n; ++i) to[start[from[i] >> shift & 0xff]++] = from[i];
    std::swap(from, to);
  }
  if (from != values.data()) std::copy(from, from + n, values.data());
}

}  // namespace

absl::optional<SortKey> FindSortKey(const Module& module, CompId comparator,
                                    const LaneProgram& lanes) {
  const InstrId root = module.comp(comparator).root;
  const Instruction& i = module.instr(root);
  if (i.opcode != Opcode::kCompare || lanes.ops.empty() || lanes.results.size() != 1 ||
      lanes.ops.back().out != lanes.results[0]) {
    return absl::nullopt;
  }
  const auto& compare = i.as<CompareAttrs>();
  const LaneOp& last = lanes.ops.back();
  const ElementType type = last.kernel.in_type[0];
  if (IsComplex(type) ||
      (compare.direction != Direction::kLt && compare.direction != Direction::kGt)) {
    return absl::nullopt;
  }
  SortKey key;
  if (IsFloat(type)) {
    if (compare.type != CompareType::kFloat && compare.type != CompareType::kTotalOrder) {
      return absl::nullopt;
    }
    key.numbers = compare.type == CompareType::kFloat;
  } else if (compare.type !=
             (IsSignedInteger(type) ? CompareType::kSigned : CompareType::kUnsigned)) {
    return absl::nullopt;
  }
  Mirror mirror(module);
  if (!mirror.Same(module.operand(root, 0), module.operand(root, 1)) ||
      mirror.straight == mirror.crossed) {
    return absl::nullopt;
  }
  key.descending = (compare.direction == Direction::kGt) != mirror.crossed;
  const int even = mirror.crossed ? 1 : 0;  // the side that is f(a)
  if (last.in[even] < lanes.num_parameters) {
    key.parameter = last.in[even];
    return key;
  }
  key.program = lanes;
  key.program.results = {last.in[even]};
  key.program.ops.pop_back();
  key.program.monoid.reset();
  return key;
}

bool NumberKeys(ElementType type, absl::Span<int64_t> keys) {
  int64_t infinity = 0;
  switch (type) {
    case ElementType::kF64: infinity = 0x7ff0000000000000; break;
    case ElementType::kF32: infinity = 0x7f800000; break;
    case ElementType::kBF16: infinity = 0x7f80; break;
    case ElementType::kF16: infinity = 0x7c00; break;
    default: return false;
  }
  bool ordered = true;
  for (int64_t& k : keys) {
    ordered &= k <= infinity && k >= ~infinity;
    if (k == -1) k = 0;
  }
  return ordered;
}

void StableOrder(absl::Span<const int64_t> keys, bool descending, absl::Span<int64_t> order,
                 std::vector<uint64_t>* scratch) {
  constexpr int64_t kLeastForRadix = 200;
  const int64_t n = static_cast<int64_t>(keys.size());
  if (n == 0) return;
  const auto [low, high] = std::minmax_element(keys.begin(), keys.end());
  const uint64_t least = static_cast<uint64_t>(*low), most = static_cast<uint64_t>(*high);
  const int bits = absl::bit_width(most - least);
  const int index_bits = absl::bit_width(static_cast<uint64_t>(n - 1));
  if (bits + index_bits > 64) {
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
      return descending ? keys[a] > keys[b] : keys[a] < keys[b];
    });
    return;
  }
  std::vector<uint64_t>& values = *scratch;
  values.resize(2 * n);
  for (int64_t i = 0; i < n; ++i) {
    const uint64_t k = static_cast<uint64_t>(keys[i]);
    values[i] = ((descending ? most - k : k - least) << index_bits) | static_cast<uint64_t>(i);
  }
  if (n < kLeastForRadix) {
    std::sort(values.begin(), values.begin() + n);
  } else {
    RadixSort(values, n, index_bits, bits);
  }
  const uint64_t mask = (uint64_t{1} << index_bits) - 1;
  for (int64_t i = 0; i < n; ++i) order[i] = static_cast<int64_t>(values[i] & mask);
}

}  // namespace internal
}  // namespace shardcall
