// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/spmd/strategies/fetch.h"

#include <algorithm>

namespace shardcall::inline internal {
namespace {

int64_t FloorDiv(int64_t a, int64_t b) { return a >= 0 ? a / b : -((-a + b - 1) / b); }

int64_t Start(const FetchSpec& s, int64_t i) { return s.step * i + s.offset; }

// The tiles that the range of shard i touches, [first, last]; none if it is outside of the operand.
struct TileRange {
  int64_t first = 0, last = -1;
  bool empty() const { return last < first; }
};

TileRange TilesOf(const FetchSpec& s, int64_t i) {
  const int64_t start = Start(s, i);
  const int64_t tiles = (s.extent + s.tile - 1) / s.tile;
  const TileRange range{std::max<int64_t>(FloorDiv(start, s.tile), 0),
                        std::min(FloorDiv(start + s.length - 1, s.tile), tiles - 1)};
  return range.empty() ? TileRange() : range;
}

}  // namespace

FetchPlan PlanFetch(const FetchSpec& s) {
  FetchPlan plan;
  if (s.tile == 0) return plan;  // operand and result are empty
  // Piece k of shard i is tile base[i] + k. A range starts in its first tile, even one before the
  // operand, so that all shards get their pieces from neighbors at equal distances.
  int64_t pieces = 1;
  for (int64_t i = 0; i < s.num_shards; ++i) {
    plan.base.push_back(FloorDiv(Start(s, i), s.tile));
    pieces = std::max(pieces, FloorDiv(Start(s, i) + s.length - 1, s.tile) - plan.base[i] + 1);
  }
  // A range longer than the operand: few shards need anything, and only tiles that there are.
  if (pieces > s.num_shards + 1) {
    plan.from_first_tile = true;
    pieces = 1;
    for (int64_t i = 0; i < s.num_shards; ++i) {
      const TileRange tiles = TilesOf(s, i);
      plan.base[i] = tiles.first;
      pieces = std::max(pieces, tiles.last - tiles.first + 1);
    }
  }
  for (int64_t k = 0; k < pieces; ++k) {
    std::vector<FetchPlan::Round> rounds;
    std::vector<int64_t> used(s.num_shards, 0);  // by source: the rounds that it is in already
    for (int64_t i = 0; i < s.num_shards; ++i) {
      const TileRange tiles = TilesOf(s, i);
      const int64_t j = plan.base[i] + k;
      if (tiles.empty() || j < tiles.first || j > tiles.last) continue;
      const int64_t r = used[j]++;
      if (r >= static_cast<int64_t>(rounds.size())) rounds.emplace_back();
      rounds[r].pairs.push_back({j, i});
      rounds[r].moves = rounds[r].moves || i != j;
    }
    for (const FetchPlan::Round& r : rounds) plan.num_permutes += r.moves;
    plan.pieces.push_back(std::move(rounds));
  }
  plan.gather = plan.num_permutes >= s.num_shards - 1 && plan.num_permutes > 0;
  return plan;
}

double FetchBytes(const FetchSpec& spec, double bytes) {
  const FetchPlan plan = PlanFetch(spec);
  return bytes * static_cast<double>(plan.gather ? spec.num_shards - 1 : plan.num_permutes);
}

namespace {

// table[coordinate] as s32[].
InstrId Lookup(Emitter& e, InstrId coordinate, const std::vector<int32_t>& table) {
  GraphBuilder& b = e.builder();
  Context& context = b.context();
  const Shape* shape = context.WithDefaultLayout(
      context.MakeArray(ElementType::kS32, {static_cast<int64_t>(table.size())}));
  const InstrId values = b.Constant(MakeLiteral(
      context, shape,
      absl::MakeConstSpan(reinterpret_cast<const char*>(table.data()), table.size() * 4)));
  return b.Reshape(b.DynamicSlice(values, {coordinate}, {1}), {});
}

// Translates pairs of shard numbers along `axes` to pairs of devices, for each combination of
// coordinates of the other axes.
void DevicePairs(const BaseMesh& mesh, absl::Span<const AxisRef> axes,
                 const FetchPlan::Round& round, std::vector<int64_t>* sources,
                 std::vector<int64_t>* targets) {
  for (const std::vector<int64_t>& group : GroupsAsLists(mesh, axes)) {
    for (const auto& [from, to] : round.pairs) {
      sources->push_back(group[from]);
      targets->push_back(group[to]);
    }
  }
}

InstrId EmitPiece(Emitter& e, InstrId x, absl::Span<const AxisRef> axes, InstrId coordinate,
                  int64_t num_shards, const std::vector<FetchPlan::Round>& rounds) {
  GraphBuilder& b = e.builder();
  InstrId piece;
  for (const FetchPlan::Round& round : rounds) {
    InstrId got = x;
    if (round.moves) {
      std::vector<int64_t> sources, targets;
      DevicePairs(*e.mesh(), axes, round, &sources, &targets);
      got = b.CollectivePermute(x, sources, targets, e.shared().next_channel++);
      e.Record(got, num_shards, e.mesh()->num_devices() / num_shards);
    }
    if (!piece.valid()) {
      piece = got;
      continue;
    }
    std::vector<int32_t> mine(num_shards, 0);
    for (const auto& pair : round.pairs) mine[pair.second] = 1;
    const InstrId here =
        b.Compare(Direction::kEq, Lookup(e, coordinate, mine), b.ConstantInt(ElementType::kS32, 1));
    piece = b.Select(b.BroadcastScalar(here, b.shape(x)), got, piece);
  }
  return piece.valid() ? piece : x;  // no shard needs this piece; any data will do
}

// The first element of the first piece: floor(start / tile) * tile, with a shift that keeps the
// dividend positive, or no less than 0.
InstrId Origin(GraphBuilder& b, const FetchSpec& s, const FetchPlan& plan, InstrId start) {
  const ElementType s32 = ElementType::kS32;
  const InstrId tile = b.ConstantInt(s32, s.tile);
  if (plan.from_first_tile) {
    const InstrId inside = b.Binary(Opcode::kMaximum, start, b.ConstantInt(s32, 0));
    return b.Binary(Opcode::kMultiply, b.Binary(Opcode::kDivide, inside, tile), tile);
  }
  int64_t shift = 0;
  for (int64_t base : plan.base) shift = std::max(shift, -base);
  const InstrId by = b.ConstantInt(s32, shift * s.tile);
  const InstrId shifted = b.Binary(Opcode::kAdd, start, by);
  const InstrId whole = b.Binary(Opcode::kMultiply, b.Binary(Opcode::kDivide, shifted, tile), tile);
  return b.Binary(Opcode::kSubtract, whole, by);
}

// `buffer`, which begins with element first[i] of the operand on shard i, padded along `dim` so
// that it has the whole range of every shard that needs one. Returns the padded elements before.
int64_t PadToRanges(GraphBuilder& b, const FetchSpec& s, int dim, const std::vector<int64_t>& first,
                    InstrId* buffer) {
  const Shape* shape = b.shape(*buffer);
  int64_t low = 0, high = std::max<int64_t>(0, s.length - shape->dim(dim));
  for (int64_t i = 0; i < s.num_shards; ++i) {
    if (TilesOf(s, i).empty()) continue;
    low = std::max(low, first[i] - Start(s, i));
    high = std::max(high, Start(s, i) + s.length - first[i] - shape->dim(dim));
  }
  if (low == 0 && high == 0) return 0;
  std::vector<int64_t> before(shape->rank(), 0), after(shape->rank(), 0);
  before[dim] = low;
  after[dim] = high;
  *buffer = b.Pad(*buffer, b.Zero(shape->element_type()), before, after);
  return low;
}

}  // namespace

InstrId EmitFetch(Emitter& e, InstrId x, int dim, absl::Span<const AxisRef> axes,
                  const FetchSpec& s) {
  if (s.tile == 0) return x;
  GraphBuilder& b = e.builder();
  const FetchPlan plan = PlanFetch(s);
  const InstrId coordinate = e.Coordinate(e.mesh(), axes);
  const ElementType s32 = ElementType::kS32;
  const InstrId start =
      b.Binary(Opcode::kAdd, b.Binary(Opcode::kMultiply, coordinate, b.ConstantInt(s32, s.step)),
               b.ConstantInt(s32, s.offset));
  InstrId buffer, origin;  // what to cut from, and the index of its first element
  std::vector<int64_t> first(s.num_shards, 0);  // by shard: that index
  if (plan.gather) {
    buffer = e.AllGather(x, dim, axes);
  } else {
    std::vector<InstrId> pieces;
    for (const auto& rounds : plan.pieces) {
      pieces.push_back(EmitPiece(e, x, axes, coordinate, s.num_shards, rounds));
    }
    buffer = b.Concatenate(pieces, dim);
    for (int64_t i = 0; i < s.num_shards; ++i) first[i] = plan.base[i] * s.tile;
  }
  const int64_t low = PadToRanges(b, s, dim, first, &buffer);
  if (plan.gather) {
    origin = b.ConstantInt(s32, -low);
  } else {
    origin = Origin(b, s, plan, start);
    if (low > 0) origin = b.Binary(Opcode::kSubtract, origin, b.ConstantInt(s32, low));
  }
  const Shape* shape = b.shape(buffer);
  std::vector<int64_t> sizes(shape->dims().begin(), shape->dims().end());
  sizes[dim] = s.length;
  std::vector<InstrId> starts(shape->rank(), b.ConstantInt(s32, 0));
  starts[dim] = b.Binary(Opcode::kSubtract, start, origin);
  return b.DynamicSlice(buffer, starts, sizes);
}

}  // namespace shardcall::inline internal
