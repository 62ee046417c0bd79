// SPDX-License-Identifier: Apache-2.0
// Gather from a sharded indexed dimension: each device gathers the rows of its tile and has zero
// elsewhere, so the result is partial. Windows of several rows may begin in one tile and end in
// another: they are gathered from a tile with zeros around it.
#include <vector>

#include "shardcall/partitioner/ir/monoid.h"
#include "shardcall/partitioner/spmd/localize/op_builder.h"
#include "shardcall/partitioner/spmd/plan/strategy.h"
#include "shardcall/partitioner/spmd/strategies/parts/indices.h"
#include "shardcall/partitioner/spmd/strategies/parts/rows.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace {

LocalIds Emit(OpBuilder& ops, const LocalOp& op) {
  GraphBuilder& b = ops.builder();
  GatherAttrs attrs = op.instr.as<GatherAttrs>();
  const Sharding* operand = op.decision.operands[0];
  const Shape* global = op.operand_shapes[0];
  // A slice that spans a sharded dimension has the size of the shard there.
  std::vector<int64_t> sizes(attrs.slice_sizes.begin(), attrs.slice_sizes.end());
  const Shape* local = b.shape(op.operands[0]);
  for (int d = 0; d < global->rank(); ++d) {
    if (sizes[d] == global->dim(d) && operand->IsDimSharded(d)) sizes[d] = local->dim(d);
  }
  InstrId indices = op.operands[1], rows = op.operands[0];
  InstrId valid;
  bool indexed = false;
  for (size_t c = 0; c < attrs.start_index_map.size(); ++c) {
    const int d = static_cast<int>(attrs.start_index_map[c]);
    if (!operand->IsDimSharded(d) || attrs.slice_sizes[d] == global->dim(d)) continue;
    if (!indexed) indices = WideIndices(b, indices);
    indexed = true;
    // Clamp the index as on the whole operand, then make it relative to the tile.
    InstrId part = IndexComponent(b, indices, attrs.index_vector_dim, static_cast<int64_t>(c));
    part = b.Binary(Opcode::kMaximum, SplatIntLike(b, 0, part),
                    b.Binary(Opcode::kMinimum, part,
                             SplatIntLike(b, global->dim(d) - attrs.slice_sizes[d], part)));
    part = b.Binary(Opcode::kSubtract, part,
                    SplatLike(b, ops.emitter().TileStart(*operand, global, d), part));
    if (attrs.slice_sizes[d] > 1) {
      // Windows elsewhere get the rows before or behind, of -0, to which each element is added
      // unchanged: gather clamps their indices.
      const int64_t around = attrs.slice_sizes[d];
      rows = WithRowsAround(b, rows, d, around,
                            b.Identity(Opcode::kAdd, b.type(rows), ZeroSign::kExact));
      part = b.Binary(Opcode::kAdd, part, SplatIntLike(b, around, part));
      indices = ReplaceComponent(b, indices, part, attrs.index_vector_dim, static_cast<int64_t>(c));
      continue;
    }
    const InstrId in =
        b.Binary(Opcode::kAnd, b.Compare(Direction::kGe, part, SplatIntLike(b, 0, part)),
                 b.Compare(Direction::kLt, part, SplatIntLike(b, local->dim(d), part)));
    valid = valid.valid() ? b.Binary(Opcode::kAnd, valid, in) : in;
    indices = ReplaceComponent(b, indices, part, attrs.index_vector_dim, static_cast<int64_t>(c));
  }
  attrs.slice_sizes = sizes;
  if (indexed) attrs.indices_are_sorted = false;
  LocalIds out = ops.Clone(op, {rows, indices}, InternAttributes(ops.context(), attrs));
  if (!valid.valid()) return out;
  // Zero where another device has the row: -0, to which each row, also one of -0, is added
  // unchanged. Batch dims of the result are all that are not offset dims, in order.
  const Shape* result = b.shape(out[0]);
  std::vector<int64_t> batch;
  for (int64_t d = 0; d < result->rank(); ++d) {
    bool offset = false;
    for (int64_t o : attrs.offset_dims) offset = offset || o == d;
    if (!offset) batch.push_back(d);
  }
  const InstrId mask = b.Broadcast(valid, result->dims(), batch);
  const InstrId none = b.Identity(Opcode::kAdd, result->element_type(), ZeroSign::kExact);
  out[0] = b.Select(mask, out[0], b.BroadcastScalar(none, result));
  return out;
}

}  // namespace

constexpr Strategy kGatherStrategy{.name = "gather from own rows", .emit = Emit};

}  // namespace internal
}  // namespace shardcall
