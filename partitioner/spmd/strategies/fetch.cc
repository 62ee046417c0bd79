// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/spmd/strategies/fetch.h"

#include <algorithm>

namespace shardcall::inline internal {
namespace {

int64_t FloorDiv(int64_t a, int64_t b) { return a >= 0 ? a / b : -((-a + b - 1) / b); }

int64_t Start(const FetchSpec& s, int64_t i) { return s.step * i + s.offset; }

}  // namespace

FetchPlan PlanFetch(const FetchSpec& s) {
  FetchPlan plan;
  if (s.tile == 0) return plan;  // operand and result are empty
  int64_t pieces = 1;
  for (int64_t i = 0; i < s.num_shards; ++i) {
    pieces = std::max(
        pieces, FloorDiv(Start(s, i) + s.length - 1, s.tile) - FloorDiv(Start(s, i), s.tile) + 1);
  }
  for (int64_t k = 0; k < pieces; ++k) {
    std::vector<FetchPlan::Round> rounds;
    std::vector<int64_t> used(s.num_shards, 0);  // by source: the rounds that it is in already
    for (int64_t i = 0; i < s.num_shards; ++i) {
      const int64_t start = Start(s, i);
      const int64_t j = FloorDiv(start, s.tile) + k;
      const bool holds = j >= 0 && j < s.num_shards && j * s.tile < s.extent;
      if (!holds || j * s.tile >= start + s.length) continue;
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

}  // namespace

InstrId EmitFetch(Emitter& e, InstrId x, int dim, absl::Span<const AxisRef> axes,
                  const FetchSpec& s) {
  if (s.tile == 0) return x;
  GraphBuilder& b = e.builder();
  const FetchPlan plan = PlanFetch(s);
  const InstrId coordinate = e.Coordinate(e.mesh(), axes);
  const ElementType s32 = ElementType::kS32;
  InstrId buffer, origin;  // what to cut from, and the index of its first element
  const InstrId start =
      b.Binary(Opcode::kAdd, b.Binary(Opcode::kMultiply, coordinate, b.ConstantInt(s32, s.step)),
               b.ConstantInt(s32, s.offset));
  if (plan.gather) {
    // Pad before and behind, so that no start index is clamped.
    int64_t low = 0, high = 0;
    for (int64_t i = 0; i < s.num_shards; ++i) {
      low = std::max(low, -Start(s, i));
      high = std::max(high, Start(s, i) + s.length - s.num_shards * s.tile);
    }
    buffer = e.AllGather(x, dim, axes);
    if (low > 0 || high > 0) {
      std::vector<int64_t> before(b.shape(x)->rank(), 0), after(b.shape(x)->rank(), 0);
      before[dim] = low;
      after[dim] = high;
      buffer = b.Pad(buffer, b.Zero(b.type(x)), before, after);
    }
    origin = b.ConstantInt(s32, -low);
  } else {
    std::vector<InstrId> pieces;
    for (const auto& rounds : plan.pieces) {
      pieces.push_back(EmitPiece(e, x, axes, coordinate, s.num_shards, rounds));
    }
    buffer = b.Concatenate(pieces, dim);
    // floor(start / tile) * tile, with a shift that keeps the dividend positive.
    int64_t shift = 0;
    for (int64_t i = 0; i < s.num_shards; ++i) {
      shift = std::max(shift, -FloorDiv(Start(s, i), s.tile));
    }
    const InstrId shifted = b.Binary(Opcode::kAdd, start, b.ConstantInt(s32, shift * s.tile));
    const InstrId whole =
        b.Binary(Opcode::kMultiply, b.Binary(Opcode::kDivide, shifted, b.ConstantInt(s32, s.tile)),
                 b.ConstantInt(s32, s.tile));
    origin = b.Binary(Opcode::kSubtract, whole, b.ConstantInt(s32, shift * s.tile));
  }
  const Shape* shape = b.shape(buffer);
  std::vector<int64_t> sizes(shape->dims().begin(), shape->dims().end());
  sizes[dim] = s.length;
  std::vector<InstrId> starts(shape->rank(), b.ConstantInt(s32, 0));
  starts[dim] = b.Binary(Opcode::kSubtract, start, origin);
  return b.DynamicSlice(buffer, starts, sizes);
}

}  // namespace shardcall::inline internal
