// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/simplify/mirrored_ops.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "shardcall/partitioner/ir/monoid.h"
#include "shardcall/partitioner/ir/row_by_opcode.h"

namespace shardcall {
inline namespace internal {
namespace {

const Shape& OperandShape(const Module& m, const Instruction& i) {
  return *m.instr(m.operands(i)[0]).shape;
}

std::optional<ReversedDims> Same(const Module&, const Instruction&, ReversedDims of) { return of; }

std::optional<ReversedDims> OfBroadcast(const Module&, const Instruction& i, ReversedDims of) {
  const auto& dimensions = i.as<DimensionsAttrs>().dimensions;
  ReversedDims out = 0;
  for (size_t d = 0; d < dimensions.size(); ++d)
    out |= ReversedDims{IsReversed(of, d)} << dimensions[d];
  return out;
}

std::optional<ReversedDims> OfTranspose(const Module&, const Instruction& i, ReversedDims of) {
  const auto& permutation = i.as<DimensionsAttrs>().dimensions;
  ReversedDims out = 0;
  for (size_t d = 0; d < permutation.size(); ++d)
    out |= ReversedDims{IsReversed(of, permutation[d])} << d;
  return out;
}

// Each reversed dimension must be one of the result, with as many elements before it.
std::optional<ReversedDims> OfReshape(const Module& m, const Instruction& i, ReversedDims of) {
  const Shape &x = OperandShape(m, i), &y = *i.shape;
  ReversedDims out = 0;
  int64_t before = 1;
  for (int d = 0; d < x.rank(); before *= x.dim(d++)) {
    if (!IsReversed(of, d)) continue;
    int64_t other = 1;
    int e = 0;
    while (e < y.rank() && !(other == before && y.dim(e) == x.dim(d))) other *= y.dim(e++);
    if (e == y.rank()) return std::nullopt;
    out |= ReversedDims{1} << e;
  }
  return out;
}

// What windows leave of their padded dimension: none begins there.
int64_t RestOfWindows(const Window& w, const Shape& x, const Shape& windows, int d) {
  const int64_t dilated = x.dim(d) == 0 ? 0 : (x.dim(d) - 1) * w.lhs_dilate[d] + 1;
  const int64_t window = (w.size[d] - 1) * w.rhs_dilate[d] + 1;
  return w.pad_low[d] + dilated + w.pad_high[d] - ((windows.dim(d) - 1) * w.stride[d] + window);
}

// The reduction must not mind the order, and windows not begin after their operand does.
std::optional<ReversedDims> OfWindows(const Module& m, const Instruction& i, ReversedDims of) {
  const auto& attrs = i.as<ReduceWindowAttrs>();
  Opcode monoid = Opcode::kAdd;
  if (!RecognizeMonoid(m, attrs.to_apply, &monoid)) return std::nullopt;
  for (int d = 0; d < i.shape->rank(); ++d) {
    if (!IsReversed(of, d)) continue;
    const int64_t rest = RestOfWindows(attrs.window, OperandShape(m, i), *i.shape, d);
    if (i.shape->dim(d) == 0 || rest > std::max<int64_t>(attrs.window.pad_high[d], 0)) {
      return std::nullopt;
    }
  }
  return of;
}

// Nor may this one mind the order.
std::optional<ReversedDims> OfReduction(const Module& m, const Instruction& i, ReversedDims of) {
  const auto& attrs = i.as<ReduceAttrs>();
  Opcode monoid = Opcode::kAdd;
  if (!i.shape->IsArray() || !RecognizeMonoid(m, attrs.to_apply, &monoid)) return std::nullopt;
  ReversedDims out = 0;
  int kept = 0;
  for (int d = 0; d < OperandShape(m, i).rank(); ++d) {
    if (absl::c_linear_search(attrs.dimensions, d)) continue;
    out |= ReversedDims{IsReversed(of, d)} << kept++;
  }
  return out;
}

void MirrorWindows(const Module& m, ReversedDims of, Instruction* copy,
                   absl::InlinedVector<InstrId, 8>* operands) {
  ReduceWindowAttrs attrs = copy->as<ReduceWindowAttrs>();
  const Shape& x = *m.instr((*operands)[0]).shape;
  std::vector<int64_t> low(attrs.window.pad_low.begin(), attrs.window.pad_low.end());
  std::vector<int64_t> high(attrs.window.pad_high.begin(), attrs.window.pad_high.end());
  for (int d = 0; d < copy->shape->rank(); ++d) {
    if (!IsReversed(of, d)) continue;
    const int64_t rest = RestOfWindows(attrs.window, x, *copy->shape, d);
    low[d] = std::exchange(high[d], low[d]) - rest;
  }
  attrs.window.pad_low = low;
  attrs.window.pad_high = high;
  copy->attrs = InternAttributes(m.context(), attrs);
}

void MirrorSlice(const Module& m, ReversedDims of, Instruction* copy,
                 absl::InlinedVector<InstrId, 8>* operands) {
  SliceAttrs attrs = copy->as<SliceAttrs>();
  std::vector<int64_t> starts(attrs.starts.begin(), attrs.starts.end());
  std::vector<int64_t> limits(attrs.limits.begin(), attrs.limits.end());
  const Shape& x = *m.instr((*operands)[0]).shape;
  for (int d = 0; d < x.rank(); ++d) {
    const int64_t rows = copy->shape->dim(d);
    if (!IsReversed(of, d) || rows == 0) continue;
    const int64_t length = (rows - 1) * attrs.strides[d] + 1;
    starts[d] = x.dim(d) - starts[d] - length;
    limits[d] = starts[d] + length;
  }
  attrs.starts = starts;
  attrs.limits = limits;
  copy->attrs = InternAttributes(m.context(), attrs);
}

void MirrorPad(const Module& m, ReversedDims of, Instruction* copy,
               absl::InlinedVector<InstrId, 8>*) {
  PadAttrs attrs = copy->as<PadAttrs>();
  std::vector<int64_t> low(attrs.low.begin(), attrs.low.end());
  std::vector<int64_t> high(attrs.high.begin(), attrs.high.end());
  for (int d = 0; d < copy->shape->rank(); ++d) {
    if (IsReversed(of, d)) std::swap(low[d], high[d]);
  }
  attrs.low = low;
  attrs.high = high;
  copy->attrs = InternAttributes(m.context(), attrs);
}

void MirrorConcatenate(const Module&, ReversedDims of, Instruction* copy,
                       absl::InlinedVector<InstrId, 8>* operands) {
  if (IsReversed(of, copy->as<DimensionsAttrs>().dimensions[0])) absl::c_reverse(*operands);
}

constexpr MirroredOp kMirrored[] = {
    {Opcode::kSlice, Same, MirrorSlice},
    {Opcode::kPad, Same, MirrorPad},
    {Opcode::kConcatenate, Same, MirrorConcatenate},
    {Opcode::kReduceWindow, OfWindows, MirrorWindows},
    {Opcode::kReduce, OfReduction, nullptr},
    {Opcode::kBroadcast, OfBroadcast, nullptr},
    {Opcode::kTranspose, OfTranspose, nullptr},
    {Opcode::kReshape, OfReshape, nullptr},
};
constexpr MirroredOp kElementwiseOp = {Opcode::kCopy, Same, nullptr};

}  // namespace

std::vector<int64_t> DimensionsOf(ReversedDims dims) {
  std::vector<int64_t> out;
  for (int d = 0; d < kMostReversedRank; ++d) {
    if (IsReversed(dims, d)) out.push_back(d);
  }
  return out;
}

const MirroredOp* MirroredOpOf(Opcode opcode) {
  return HasTrait(opcode, kElementwise) ? &kElementwiseOp : RowByOpcode(kMirrored, opcode);
}

}  // namespace internal
}  // namespace shardcall
