// SPDX-License-Identifier: Apache-2.0
// Gather and scatter. Where the indexed dimension of the operand is sharded,
// each device works on the indices that fall into its tile; a gather's result
// is then partial (zero elsewhere), a scatter skips the others.
#include <vector>

#include "absl/algorithm/container.h"
#include "shardcall/partitioner/ir/monoid.h"
#include "shardcall/partitioner/spmd/localize/localizer.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
namespace {

// Indices as s32 (s64 where they were 64 bits wide), so that offsets can be
// subtracted without wrapping.
InstrId WideIndices(GraphBuilder& b, InstrId indices) {
  const ElementType type = b.type(indices);
  const bool wide = ElementTypeBits(type) == 64 || type == ElementType::kU32;
  return b.Convert(indices, wide ? ElementType::kS64 : ElementType::kS32);
}

// The indices' shape without the index vector dimension, and the component for
// operand dimension `map[c]` as an array of that shape.
InstrId Component(GraphBuilder& b, InstrId indices, int64_t index_vector_dim, int64_t c) {
  const Shape* shape = b.shape(indices);
  if (index_vector_dim == shape->rank()) return indices;
  std::vector<int64_t> starts(shape->rank(), 0), limits(shape->dims().begin(), shape->dims().end());
  starts[index_vector_dim] = c;
  limits[index_vector_dim] = c + 1;
  const InstrId one = b.Slice(indices, starts, limits);
  std::vector<int64_t> dims;
  for (int d = 0; d < shape->rank(); ++d) {
    if (d != index_vector_dim) dims.push_back(shape->dim(d));
  }
  return b.Reshape(one, dims);
}

// Puts `component` in place of component c.
InstrId ReplaceComponent(GraphBuilder& b, InstrId indices, InstrId component,
                         int64_t index_vector_dim, int64_t c) {
  const Shape* shape = b.shape(indices);
  if (index_vector_dim == shape->rank()) return component;
  std::vector<InstrId> parts;
  for (int64_t k = 0; k < shape->dim(static_cast<int>(index_vector_dim)); ++k) {
    const InstrId part = k == c ? component : Component(b, indices, index_vector_dim, k);
    std::vector<int64_t> dims(shape->dims().begin(), shape->dims().end());
    dims[index_vector_dim] = 1;
    parts.push_back(b.Reshape(part, dims));
  }
  return b.Concatenate(parts, index_vector_dim);
}

InstrId Splat(GraphBuilder& b, InstrId scalar, InstrId like) {
  return b.BroadcastScalar(b.Convert(scalar, b.type(like)), b.shape(like));
}
InstrId SplatInt(GraphBuilder& b, int64_t value, InstrId like) {
  return b.BroadcastScalar(b.ConstantInt(b.type(like), value), b.shape(like));
}

// Whether updates are one row of the indexed dimension `d` of several: the
// dimension is inserted, or its window has size 1. (A window over the whole
// dimension is sharded with it, and starts at 0.)
bool OneRow(const ScatterAttrs& attrs, const Shape& input, const Shape& update, int d) {
  size_t window = 0;
  for (int k = 0;; ++k) {
    if (absl::c_linear_search(attrs.inserted_window_dims, k)) {
      if (k == d) return true;
      continue;
    }
    if (absl::c_linear_search(attrs.input_batching_dims, k)) continue;
    if (k == d) break;
    ++window;
  }
  return input.dim(d) > 1 && update.dim(static_cast<int>(attrs.update_window_dims[window])) == 1;
}

}  // namespace

LocalIds HandleGather(Localizer& l, const LocalOp& op) {
  GraphBuilder& b = l.builder();
  GatherAttrs attrs = op.instr.as<GatherAttrs>();
  const Sharding* operand = op.decision.operands[0];
  const Shape* global = op.operand_shapes[0];
  // Dimensions taken whole follow the shard.
  std::vector<int64_t> sizes(attrs.slice_sizes.begin(), attrs.slice_sizes.end());
  const Shape* local = b.shape(op.operands[0]);
  for (int d = 0; d < global->rank(); ++d) {
    if (sizes[d] == global->dim(d) && operand->IsDimSharded(d)) sizes[d] = local->dim(d);
  }
  InstrId indices = op.operands[1];
  InstrId valid;
  bool indexed = false;
  for (size_t c = 0; c < attrs.start_index_map.size(); ++c) {
    const int d = static_cast<int>(attrs.start_index_map[c]);
    if (!operand->IsDimSharded(d) || attrs.slice_sizes[d] == global->dim(d)) continue;
    if (!indexed) indices = WideIndices(b, indices);
    indexed = true;
    // Clamp as the op does on the whole operand, then shift into the tile.
    InstrId part = Component(b, indices, attrs.index_vector_dim, static_cast<int64_t>(c));
    part = b.Binary(Opcode::kMaximum, SplatInt(b, 0, part),
                    b.Binary(Opcode::kMinimum, part, SplatInt(b, global->dim(d) - 1, part)));
    part = b.Binary(Opcode::kSubtract, part,
                    Splat(b, l.emitter().TileStart(*operand, global, d), part));
    const InstrId in =
        b.Binary(Opcode::kAnd, b.Compare(Direction::kGe, part, SplatInt(b, 0, part)),
                 b.Compare(Direction::kLt, part, SplatInt(b, local->dim(d), part)));
    valid = valid.valid() ? b.Binary(Opcode::kAnd, valid, in) : in;
    indices = ReplaceComponent(b, indices, part, attrs.index_vector_dim, static_cast<int64_t>(c));
  }
  attrs.slice_sizes = sizes;
  if (indexed) attrs.indices_are_sorted = false;
  LocalIds out = l.Clone(op, {op.operands[0], indices}, InternAttributes(l.context(), attrs));
  if (!indexed) return out;
  // Zero where the row is another device's; batch dims of the result are those
  // that are no offset dims, in order.
  const Shape* result = b.shape(out[0]);
  std::vector<int64_t> batch;
  for (int64_t d = 0; d < result->rank(); ++d) {
    bool offset = false;
    for (int64_t o : attrs.offset_dims) offset = offset || o == d;
    if (!offset) batch.push_back(d);
  }
  const InstrId mask = b.Broadcast(valid, result->dims(), batch);
  out[0] = b.Select(mask, out[0], b.BroadcastScalar(b.Zero(result->element_type()), result));
  return out;
}

LocalIds HandleScatter(Localizer& l, const LocalOp& op) {
  GraphBuilder& b = l.builder();
  ScatterAttrs attrs = op.instr.as<ScatterAttrs>();
  const int k = static_cast<int>(op.operands.size()) / 2;  // inputs; then indices, updates
  LocalIds operands = op.operands;
  const Sharding* input = op.decision.operands[0];
  const Shape* global = op.operand_shapes[0];
  InstrId indices = operands[k];
  bool indexed = false;
  for (size_t c = 0; c < attrs.scatter_dims_to_operand_dims.size(); ++c) {
    const int d = static_cast<int>(attrs.scatter_dims_to_operand_dims[c]);
    if (!input->IsDimSharded(d) || !OneRow(attrs, *global, *op.operand_shapes[k + 1], d)) continue;
    if (!indexed) indices = WideIndices(b, indices);
    indexed = true;
    // Out of the tile is out of bounds, which a scatter skips.
    InstrId part = Component(b, indices, attrs.index_vector_dim, static_cast<int64_t>(c));
    part =
        b.Binary(Opcode::kSubtract, part, Splat(b, l.emitter().TileStart(*input, global, d), part));
    indices = ReplaceComponent(b, indices, part, attrs.index_vector_dim, static_cast<int64_t>(c));
  }
  if (indexed) attrs.indices_are_sorted = false;
  operands[k] = indices;
  const int num_updates = static_cast<int>(operands.size()) - k - 1;
  SHARDCALL_CHECK(num_updates == k);
  Opcode monoid = Opcode::kAdd;
  const bool known = RecognizeMonoid(l.global(), attrs.to_apply, &monoid);
  for (int i = 0; i < k; ++i) {
    const Sharding* made = op.decision.produced[i];
    if (made->partial().empty()) continue;
    // The operand counts once, and padded updates not at all.
    SHARDCALL_CHECK(known);
    operands[i] = l.emitter().OnFirst(operands[i], made->partial(), made->partial_op());
    const int u = k + 1 + i;
    const Sharding& s = *op.decision.operands[u];
    std::vector<int> dims;
    for (int d = 0; d < s.rank(); ++d) {
      bool window = false;
      for (int64_t w : attrs.update_window_dims) window = window || w == d;
      if (!window && s.IsDimSharded(d)) dims.push_back(d);
    }
    operands[u] = l.emitter().MaskPadding(
        operands[u], op.operand_shapes[u], s, dims,
        b.Identity(monoid, b.type(operands[u]), ZeroSign::kExact));
  }
  attrs.to_apply = l.CopyComputation(attrs.to_apply);
  return l.Clone(op, operands, InternAttributes(l.context(), attrs));
}

}  // namespace shardcall
