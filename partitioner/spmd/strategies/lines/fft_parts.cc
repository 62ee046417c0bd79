// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/spmd/strategies/lines/fft_parts.h"

#include <cmath>
#include <numbers>
#include <vector>

#include "absl/algorithm/container.h"

namespace shardcall {
inline namespace internal {

InstrId FftOfDims(GraphBuilder& b, InstrId x, const FftAttrs& whole, absl::Span<const int> dims) {
  if (dims.empty()) return x;
  const int rank = b.shape(x)->rank();
  // An fft op transforms the last dimensions.
  std::vector<int64_t> order, back(rank);
  for (int d = 0; d < rank; ++d) {
    if (!absl::c_linear_search(dims, d)) order.push_back(d);
  }
  order.insert(order.end(), dims.begin(), dims.end());
  for (int k = 0; k < rank; ++k) back[order[k]] = k;
  const bool in_order = absl::c_is_sorted(order);
  if (!in_order) x = b.Transpose(x, order);

  FftAttrs attrs;
  const bool with_last = dims.back() == rank - 1;
  if (with_last || whole.type == FftType::kFft || whole.type == FftType::kIfft) {
    attrs.type = whole.type;
  } else {
    attrs.type = whole.type == FftType::kRfft ? FftType::kFft : FftType::kIfft;
  }
  std::vector<int64_t> length;
  const int skipped = rank - static_cast<int>(whole.length.size());
  for (int d : dims) length.push_back(whole.length[d - skipped]);
  attrs.length = length;
  x = b.Add(Opcode::kFft, {x}, InternAttributes(b.context(), attrs));
  return in_order ? x : b.Transpose(x, back);
}

int64_t NumRowsOfLine(int64_t size, int64_t shards) {
  if (size == 0 || size % (shards * shards) != 0) return 0;
  const int64_t rest = size / (shards * shards);
  int64_t rows = static_cast<int64_t>(std::sqrt(static_cast<double>(rest)));
  while (rest % rows != 0) --rows;
  return rows * shards;
}

LineAsPlane AsPlane(Context& context, ElementType type, const Shape* lines, const Sharding& s,
                    int64_t first, int64_t second) {
  const int line = lines->rank() - 1;
  std::vector<int64_t> dims(lines->dims().begin(), lines->dims().end());
  dims.back() = first;
  dims.push_back(second);
  ShardingBuilder by_first(s.mesh(), line + 2), by_second(s.mesh(), line + 2);
  by_first.manual = by_second.manual = AxisList(s.manual().begin(), s.manual().end());
  for (int d = 0; d < line; ++d) {
    by_first.dims[d] = by_second.dims[d] = AxisList(s.dim(d).begin(), s.dim(d).end());
  }
  by_first.dims[line] = by_second.dims[line + 1] = AxisList(s.dim(line).begin(), s.dim(line).end());
  return {context.MakeArray(type, dims), by_first.Intern(context), by_second.Intern(context)};
}

InstrId TimesTwiddles(GraphBuilder& b, InstrId x, int64_t n, bool first_is_sharded, InstrId start,
                      bool inverse) {
  const Shape* shape = b.shape(x);
  const int rank = shape->rank();
  const int64_t dims[] = {shape->dim(rank - 2), shape->dim(rank - 1)};
  const InstrId places = b.Iota(ElementType::kS64, dims, first_is_sharded ? 0 : 1);
  const InstrId sharded =
      b.Binary(Opcode::kAdd, places,
               b.BroadcastScalar(b.Convert(start, ElementType::kS64), b.shape(places)));
  const InstrId whole = b.Iota(ElementType::kS64, dims, first_is_sharded ? 1 : 0);
  // The angle is exact: the exponent is a whole number below n.
  const InstrId power = b.Binary(Opcode::kMultiply, whole, sharded);
  const double turn = (inverse ? 2 : -2) * std::numbers::pi / static_cast<double>(n);
  const InstrId angle =
      b.Binary(Opcode::kMultiply, b.Convert(power, ElementType::kF64),
               b.BroadcastScalar(b.ConstantDouble(ElementType::kF64, turn), b.shape(power)));
  const ElementType part =
      shape->element_type() == ElementType::kC128 ? ElementType::kF64 : ElementType::kF32;
  const InstrId factor =
      b.Binary(Opcode::kComplex, b.Convert(b.Unary(Opcode::kCosine, angle), part),
               b.Convert(b.Unary(Opcode::kSine, angle), part));
  return b.Binary(Opcode::kMultiply, x, b.Broadcast(factor, shape->dims(), {rank - 2, rank - 1}));
}

}  // namespace internal
}  // namespace shardcall
