// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/spmd/localize/exchange.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "shardcall/partitioner/spmd/localize/numbered.h"
#include "shardcall/sharding/exchange/part_row.h"

namespace shardcall {
inline namespace internal {
namespace {

using Dims = absl::InlinedVector<int64_t, 8>;
constexpr ElementType kIndex = ElementType::kS32;

Dims DimsWith(const Shape& shape, int dim, int64_t size) {
  Dims dims(shape.dims().begin(), shape.dims().end());
  dims[dim] = size;
  return dims;
}

// Emits one exchange: holds what its parts have in common.
class Exchanger {
 public:
  Exchanger(Emitter& e, InstrId x, int dim, absl::Span<const AxisRef> axes, const ShardRanges& r)
      : e_(e), b_(e.builder()), x_(x), dim_(dim), axes_(axes), ranges_(r) {}

  InstrId Emit() {
    const ExchangePlan plan = PlanExchange(ranges_);
    // Of a reshard it is known as a whole.
    const double given = e_.needed_share();
    if (given < 0) e_.set_needed_share(plan.sent > 0 ? NeededElements(ranges_) / plan.sent : 1);
    const InstrId made = Run(plan);
    e_.set_needed_share(given);
    return made;
  }

 private:
  InstrId Run(const ExchangePlan& plan) {
    if (plan.gather) return CutOutOfWhole(e_.AllGather(x_, dim_, axes_));
    std::vector<InstrId> parts;
    for (const RangePart& part : plan.parts) parts.push_back(Get(part));
    if (plan.in_a_row) return Joined(parts);
    if (const auto row = PartsAsRow(ranges_, plan.parts)) return CutOutOfRow(*row, plan, parts);
    return PutInPlace(plan.parts, parts);
  }

  InstrId Joined(absl::Span<const InstrId> parts) {
    return parts.size() == 1 ? parts[0] : b_.Concatenate(parts, dim_);
  }

  InstrId CutOutOfRow(const PartRow& row, const ExchangePlan& plan,
                      absl::Span<const InstrId> parts) {
    std::vector<InstrId> places;
    for (const RowPlace& place : row.places) places.push_back(Fill(place, plan, parts));
    return Cut(Padded(Joined(places), row.before, row.after), row.from, ranges_.length);
  }

  // Each shard has the part that it needs there.
  InstrId Fill(const RowPlace& place, const ExchangePlan& plan, absl::Span<const InstrId> parts) {
    std::optional<InstrId> filled;
    for (const RowPlace::Member& m : place.members) {
      const RangePart& part = plan.parts[m.part];
      const InstrId whole = Padded(parts[m.part], m.at, place.size - m.at - part.size);
      filled = filled.has_value() ? b_.Select(IsTarget(part), whole, *filled) : whole;
    }
    return *filled;
  }

  // Whether this shard needs the part, pred[].
  InstrId IsTarget(const RangePart& part) {
    std::vector<int64_t> needs(ranges_.num_shards);
    for (const auto& [source, target] : part.pairs) needs[target] = 1;
    return b_.Compare(Direction::kNe, e_.OfShard(axes_, needs), b_.ConstantInt(kIndex, 0));
  }

  InstrId Padded(InstrId x, int64_t low, int64_t high) {
    if (low == 0 && high == 0) return x;
    Dims before(b_.shape(x)->rank(), 0), after = before;
    before[dim_] = low;
    after[dim_] = high;
    return b_.Pad(x, b_.Zero(b_.type(x)), before, after);
  }

  InstrId Cut(InstrId x, absl::Span<const int64_t> from, int64_t size) {
    return CutByShard(e_, x, dim_, axes_, from, size);
  }

  InstrId Zeros(int64_t size) {
    const Shape* shape = b_.context().WithDims(b_.shape(x_), DimsWith(*b_.shape(x_), dim_, size));
    return b_.BroadcastScalar(b_.Zero(shape->element_type()), shape);
  }

  InstrId Get(const RangePart& part) {
    if (part.pairs.empty()) return Zeros(part.size);
    const InstrId cut = Cut(x_, part.from, part.size);
    if (part.own) return cut;
    return e_.SendShards(cut, axes_, part.pairs);
  }

  // The parts written into a range with a margin on each side, into which what a shard does not
  // need falls. Where parts overlap they have the same elements.
  InstrId PutInPlace(absl::Span<const RangePart> parts, absl::Span<const InstrId> values) {
    int64_t margin = 0;
    for (const RangePart& p : parts) margin = std::max(margin, p.size);
    InstrId range = Zeros(ranges_.length + 2 * margin);
    for (size_t k = 0; k < parts.size(); ++k) {
      std::vector<int64_t> to = parts[k].to;
      for (int64_t& t : to) t += margin;
      absl::InlinedVector<InstrId, 8> starts(b_.shape(x_)->rank(), b_.ConstantInt(kIndex, 0));
      starts[dim_] = e_.OfShard(axes_, to);
      range = b_.DynamicUpdateSlice(range, values[k], starts);
    }
    return Cut(range, {margin}, ranges_.length);
  }

  // The range, cut out of the gathered dimension, which is padded so that it has the whole range of
  // every shard that needs an element of it.
  InstrId CutOutOfWhole(InstrId whole) {
    const ShardRanges& r = ranges_;
    const int64_t size = b_.shape(whole)->dim(dim_);
    int64_t low = 0, high = std::max<int64_t>(0, r.length - size);
    std::vector<int64_t> from;
    for (int64_t i = 0; i < r.num_shards; ++i) {
      from.push_back(r.Start(i));
      if (r.Start(i) >= r.end || r.Start(i) + r.length <= r.begin) continue;
      low = std::max(low, -r.Start(i));
      high = std::max(high, r.Start(i) + r.length - size);
    }
    for (int64_t& f : from) f += low;
    return Cut(Padded(whole, low, high), from, r.length);
  }

  Emitter& e_;
  GraphBuilder& b_;
  const InstrId x_;
  const int dim_;
  const absl::Span<const AxisRef> axes_;
  const ShardRanges& ranges_;
};

}  // namespace

InstrId CutByShard(Emitter& e, InstrId x, int dim, absl::Span<const AxisRef> axes,
                   absl::Span<const int64_t> from, int64_t size) {
  GraphBuilder& b = e.builder();
  const Shape* shape = b.shape(x);
  const bool same = std::all_of(from.begin(), from.end(), [&](int64_t f) { return f == from[0]; });
  if (same && from[0] == 0 && size == shape->dim(dim)) return x;
  if (same) {
    Dims starts(shape->rank(), 0), limits = DimsWith(*shape, dim, from[0] + size);
    starts[dim] = from[0];
    return b.Slice(x, starts, limits);
  }
  absl::InlinedVector<InstrId, 8> starts(shape->rank(), b.ConstantInt(kIndex, 0));
  starts[dim] = e.OfShard(axes, from);
  return b.DynamicSlice(x, starts, DimsWith(*shape, dim, size));
}

InstrId EmitExchange(Emitter& e, InstrId x, int dim, absl::Span<const AxisRef> axes,
                     const ShardRanges& ranges) {
  if (ranges.tile == 0) return x;
  return Exchanger(e, x, dim, axes, ranges).Emit();
}

InstrId PlacesOf(Emitter& e, InstrId x, int dim, absl::Span<const AxisRef> axes,
                 const ShardRanges& ranges) {
  GraphBuilder& b = e.builder();
  Numbered numbered(b);
  std::vector<int64_t> starts;
  for (int64_t i = 0; i < ranges.num_shards; ++i) starts.push_back(ranges.Start(i));
  const InstrId start = e.OfShard(axes, starts);
  const InstrId iota = b.Iota(kIndex, b.shape(x)->dims(), dim);
  return b.Binary(Opcode::kAdd, iota, b.BroadcastScalar(start, b.shape(iota)));
}

InstrId FillOutside(Emitter& e, InstrId x, int dim, absl::Span<const AxisRef> axes,
                    const ShardRanges& ranges, InstrId fill) {
  if (!ranges.LeavesBounds()) return x;
  GraphBuilder& b = e.builder();
  const Shape* shape = b.shape(x);
  InstrId inside;
  {
    Numbered numbered(b);
    const InstrId place = PlacesOf(e, x, dim, axes, ranges);
    const auto splat = [&](int64_t v) {
      return b.BroadcastScalar(b.ConstantInt(kIndex, v), b.shape(place));
    };
    inside = b.Binary(Opcode::kAnd, b.Compare(Direction::kGe, place, splat(ranges.begin)),
                      b.Compare(Direction::kLt, place, splat(ranges.end)));
  }
  return b.Select(inside, x, b.BroadcastScalar(fill, shape));
}

}  // namespace internal
}  // namespace shardcall
