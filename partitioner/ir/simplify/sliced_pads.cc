// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/simplify/sliced_pads.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/algorithm/container.h"

namespace shardcall {
inline namespace internal {
namespace {

using Sizes = std::vector<int64_t>;

// What the slice has of the padded array around x; negative where it has less than x.
struct Around {
  Sizes low, high;
  bool AllAre(bool (*holds)(int64_t)) const {
    return absl::c_all_of(low, holds) && absl::c_all_of(high, holds);
  }
};

// None if the slice skips elements, if the pad has some between those of x, or if nothing of x is
// left.
std::optional<Around> AroundOf(const Shape& x, const Shape& padded, const PadAttrs& pad,
                               const SliceAttrs& slice) {
  Around out;
  for (int d = 0; d < x.rank(); ++d) {
    if (slice.strides[d] != 1 || pad.interior[d] != 0) return std::nullopt;
    const int64_t low = pad.low[d] - slice.starts[d];
    const int64_t high = pad.high[d] - (padded.dim(d) - slice.limits[d]);
    if (x.dim(d) + std::min<int64_t>(low, 0) + std::min<int64_t>(high, 0) <= 0) return std::nullopt;
    out.low.push_back(low);
    out.high.push_back(high);
  }
  return out;
}

}  // namespace

std::optional<CallExpansion> ReadSliceOfPad(const Module& m, InstrId id) {
  const Instruction& i = m.instr(id);
  const InstrId padded = m.operand(id, 0);
  const Instruction& pad = m.instr(padded);
  const bool annotated = pad.sharding != nullptr || pad.frontend != nullptr;
  if (pad.opcode != Opcode::kPad || annotated) return std::nullopt;
  const Shape& x = *m.instr(m.operand(padded, 0)).shape;
  if (x.IsDynamic() || pad.shape->IsDynamic() || i.shape->IsDynamic()) return std::nullopt;
  const std::optional<Around> around =
      AroundOf(x, *pad.shape, pad.as<PadAttrs>(), i.as<SliceAttrs>());
  if (!around.has_value()) return std::nullopt;
  const auto make = [around = *around](GraphBuilder& b, absl::Span<const InstrId> given) {
    const InstrId x = b.module().operand(given[0], 0), value = b.module().operand(given[0], 1);
    if (around.AllAre([](int64_t n) { return n == 0; })) return std::vector<InstrId>{x};
    if (!around.AllAre([](int64_t n) { return n <= 0; })) {
      return std::vector<InstrId>{b.Pad(x, value, around.low, around.high)};
    }
    Sizes starts, limits;
    for (int d = 0; d < b.shape(x)->rank(); ++d) {
      starts.push_back(-around.low[d]);
      limits.push_back(b.shape(x)->dim(d) + around.high[d]);
    }
    return std::vector<InstrId>{b.Slice(x, starts, limits)};
  };
  return CallExpansion{{i.shape}, make, /*leaves_out=*/true};
}

}  // namespace internal
}  // namespace shardcall
