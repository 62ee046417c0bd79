// SPDX-License-Identifier: Apache-2.0
// Scatter into a sharded indexed dimension: each device applies the updates that fall into its tile
// and skips the others. Windows of several rows may begin in one tile and end in another: they are
// scattered into a tile with rows around it, which are cut off again.
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "shardcall/partitioner/ir/monoid.h"
#include "shardcall/partitioner/spmd/localize/op_builder.h"
#include "shardcall/partitioner/spmd/plan/strategy.h"
#include "shardcall/partitioner/spmd/strategies/parts/indices.h"
#include "shardcall/partitioner/spmd/strategies/parts/rows.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace {

// The rows of an update in the indexed dimension `d`.
int64_t RowsOfUpdate(const ScatterAttrs& attrs, const Shape& update, int d) {
  size_t window = 0;
  for (int k = 0;; ++k) {
    if (absl::c_linear_search(attrs.inserted_window_dims, k)) {
      if (k == d) return 1;
      continue;
    }
    if (absl::c_linear_search(attrs.input_batching_dims, k)) continue;
    if (k == d) return update.dim(static_cast<int>(attrs.update_window_dims[window]));
    ++window;
  }
}

// x without the rows around each dimension of `around`.
InstrId Middle(GraphBuilder& b, InstrId x, absl::Span<const std::pair<int, int64_t>> around) {
  const Shape* shape = b.shape(x);
  std::vector<int64_t> starts(shape->rank(), 0), limits(shape->dims().begin(), shape->dims().end());
  for (const auto& [d, rows] : around) {
    starts[d] = rows;
    limits[d] -= rows;
  }
  return b.Slice(x, starts, limits);
}

LocalIds Emit(OpBuilder& ops, const LocalOp& op) {
  GraphBuilder& b = ops.builder();
  ScatterAttrs attrs = op.instr.as<ScatterAttrs>();
  const int k = static_cast<int>(op.operands.size()) / 2;  // inputs; then indices, updates
  LocalIds operands = op.operands;
  const Sharding* input = op.decision.operands[0];
  const Shape* global = op.operand_shapes[0];
  InstrId indices = operands[k];
  bool indexed = false;
  absl::InlinedVector<std::pair<int, int64_t>, 2> around;
  for (size_t c = 0; c < attrs.scatter_dims_to_operand_dims.size(); ++c) {
    const int d = static_cast<int>(attrs.scatter_dims_to_operand_dims[c]);
    const int64_t rows = RowsOfUpdate(attrs, *op.operand_shapes[k + 1], d);
    // A window over the whole dimension is sharded with it, and starts at 0.
    if (!input->IsDimSharded(d) || rows == global->dim(d)) continue;
    if (!indexed) indices = WideIndices(b, indices);
    indexed = true;
    // Rows of other tiles get an index that is out of bounds, which scatter skips.
    InstrId part = IndexComponent(b, indices, attrs.index_vector_dim, static_cast<int64_t>(c));
    InstrId skipped;
    if (rows > 1) {  // with room for windows that begin or end in another tile
      around.push_back({d, rows});
      skipped =
          b.Binary(Opcode::kOr, b.Compare(Direction::kLt, part, SplatIntLike(b, 0, part)),
                   b.Compare(Direction::kGt, part, SplatIntLike(b, global->dim(d) - rows, part)));
      part = b.Binary(Opcode::kAdd, part, SplatIntLike(b, rows, part));
    }
    part = b.Binary(Opcode::kSubtract, part,
                    SplatLike(b, ops.emitter().TileStart(*input, global, d), part));
    if (skipped.valid()) part = b.Select(skipped, SplatIntLike(b, -1, part), part);
    indices = ReplaceComponent(b, indices, part, attrs.index_vector_dim, static_cast<int64_t>(c));
  }
  if (indexed) attrs.indices_are_sorted = false;
  operands[k] = indices;
  const int num_updates = static_cast<int>(operands.size()) - k - 1;
  SHARDCALL_CHECK(num_updates == k);
  Opcode monoid = Opcode::kAdd;
  const bool known = RecognizeMonoid(ops.global(), attrs.to_apply, &monoid);
  for (int i = 0; i < k; ++i) {
    const Sharding* made = op.decision.produced[i];
    if (made->partial().empty()) continue;
    // Where the result is partial, the operand counts on one device only, and padded updates get
    // the identity.
    SHARDCALL_CHECK(known);
    operands[i] = ops.emitter().OnFirst(operands[i], made->partial(), made->partial_op());
    const int u = k + 1 + i;
    const Sharding& s = *op.decision.operands[u];
    std::vector<int> dims;
    for (int d = 0; d < s.rank(); ++d) {
      bool window = false;
      for (int64_t w : attrs.update_window_dims) window = window || w == d;
      if (!window && s.IsDimSharded(d)) dims.push_back(d);
    }
    operands[u] =
        ops.emitter().MaskPadding(operands[u], op.operand_shapes[u], s, dims,
                                  b.Identity(monoid, b.type(operands[u]), ZeroSign::kExact));
  }
  attrs.to_apply = ops.CopyComputation(attrs.to_apply);
  if (around.empty()) return ops.Clone(op, operands, InternAttributes(ops.context(), attrs));
  for (int i = 0; i < k; ++i) {
    const InstrId any = b.Zero(b.type(operands[i]));
    for (const auto& [d, rows] : around) operands[i] = WithRowsAround(b, operands[i], d, rows, any);
  }
  LocalIds results =
      ops.Flatten(b.Add(Opcode::kScatter, operands, InternAttributes(ops.context(), attrs)));
  for (InstrId& r : results) r = Middle(b, r, around);
  return results;
}

}  // namespace

constexpr Strategy kScatterStrategy{.name = "scatter to own rows", .emit = Emit};

}  // namespace internal
}  // namespace shardcall
