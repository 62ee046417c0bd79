// SPDX-License-Identifier: Apache-2.0
// Scatter into a sharded indexed dimension: each device applies the updates that fall into its tile
// and skips the others.
#include <vector>

#include "absl/algorithm/container.h"
#include "shardcall/partitioner/ir/monoid.h"
#include "shardcall/partitioner/spmd/localize/localizer.h"
#include "shardcall/partitioner/spmd/plan/strategy.h"
#include "shardcall/partitioner/spmd/strategies/indices.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall::inline internal {
namespace {

// Whether each update is a single row of the indexed dimension `d`, which has several: the
// dimension is inserted, or its window has size 1. (A window over the whole dimension is sharded
// with it, and starts at 0.)
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

LocalIds Emit(Localizer& l, const LocalOp& op) {
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
    // Rows of other tiles get an index that is out of bounds, which scatter skips.
    InstrId part = IndexComponent(b, indices, attrs.index_vector_dim, static_cast<int64_t>(c));
    part = b.Binary(Opcode::kSubtract, part,
                    SplatLike(b, l.emitter().TileStart(*input, global, d), part));
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
    // Where the result is partial, the operand counts on one device only, and padded updates get
    // the identity.
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
    operands[u] =
        l.emitter().MaskPadding(operands[u], op.operand_shapes[u], s, dims,
                                b.Identity(monoid, b.type(operands[u]), ZeroSign::kExact));
  }
  attrs.to_apply = l.CopyComputation(attrs.to_apply);
  return l.Clone(op, operands, InternAttributes(l.context(), attrs));
}

}  // namespace

constexpr Strategy kScatterStrategy{.name = "scatter to own rows", .emit = Emit};

}  // namespace shardcall::inline internal
