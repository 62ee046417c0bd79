// SPDX-License-Identifier: Apache-2.0
// Reduce over a sharded dimension: padding is set to the identity, and another init value is
// counted once. Where the reducer has no partial sums (an argmax, or a computation of the program's
// own), each device reduces its shard, and the results of all shards are brought together and
// reduced once more.
#include <algorithm>
#include <vector>

#include "absl/algorithm/container.h"
#include "shardcall/partitioner/ir/analysis/identity_constant.h"
#include "shardcall/partitioner/ir/monoid.h"
#include "shardcall/partitioner/spmd/localize/group_collectives.h"
#include "shardcall/partitioner/spmd/localize/op_builder.h"
#include "shardcall/partitioner/spmd/plan/strategy.h"
#include "shardcall/partitioner/spmd/strategies/parts/masked.h"
#include "shardcall/sharding/base/status.h"
#include "shardcall/sharding/reshard/reshard.h"

namespace shardcall {
inline namespace internal {
namespace {

// The axes of the factors of whose shards the results are merged.
AxisList MergedAxes(const ShardingRule& rule,
                    absl::Span<const absl::Span<const AxisRef>> factor_axes) {
  AxisList axes;
  for (size_t f = 0; f < factor_axes.size(); ++f) {
    if (rule.factors[f].kind != FactorKind::kPermutation) continue;
    axes.insert(axes.end(), factor_axes[f].begin(), factor_axes[f].end());
  }
  return axes;
}

bool Crosses(const OpQuery& op, int f) {
  return op.rule->factors[f].kind == FactorKind::kPermutation;
}

// Along which dimension of a result, of which `local` is one device's shard, each of n devices
// merges a tile of all shards' results, and the tiles are gathered: that sends 2 (n - 1) / n times
// the shard. -1: each device gathers the results and merges them, which sends n - 1 times the
// shard, in one collective. `bits`: of an element of the widest result; all have these dimensions.
int TiledDim(absl::Span<const int64_t> local, int bits, int64_t n) {
  constexpr double kWorthACollective = 4096;  // bytes
  double bytes = bits / 8.0;
  for (int64_t size : local) bytes *= static_cast<double>(size);
  const double parts = static_cast<double>(n);
  if ((parts - 1) * (1 - 2 / parts) * bytes < kWorthACollective) return -1;
  const auto dim = absl::c_find_if(local, [n](int64_t size) { return size % n == 0; });
  return dim == local.end() ? -1 : static_cast<int>(dim - local.begin());
}

bool Complete(const OpQuery& op, Candidate* c) {
  const AxisList axes = MergedAxes(*op.rule, c->axes);
  const int64_t n = AxesSize(axes);
  if (n == 1) return true;
  std::vector<int64_t> local;
  for (int d = 0; d < op.result(0)->rank(); ++d) {
    local.push_back(CeilDiv(op.result(0)->dim(d), c->produced[0]->num_shards(d)));
  }
  int widest = 0;
  for (size_t k = 0; k < c->produced.size(); ++k) {
    widest = std::max(widest, ElementTypeBits(op.result(static_cast<int>(k))->element_type()));
  }
  const bool tiled = TiledDim(local, widest, n) >= 0;
  for (size_t k = 0; k < c->produced.size(); ++k) {
    const Sharding& made = *c->produced[k];
    const double parts = static_cast<double>(n);
    const double bytes = static_cast<double>(LocalBytes(op.result(static_cast<int>(k)), made));
    const auto add = [&](Collective collective, double sent) {
      c->AddEmitted(op.module.context(), sent, *made.mesh(), axes, collective);
    };
    if (tiled) {
      add(Collective::kAllToAll, (parts - 1) / parts * bytes);
      add(Collective::kAllGather, (parts - 1) / parts * bytes);
    } else {
      add(Collective::kAllGather, (parts - 1) * bytes);
    }
  }
  return true;
}

// The results of the shards along a new dimension, `dim` or, if that is negative, the first.
InstrId BringTogether(Emitter& emitter, InstrId part, int dim, absl::Span<const AxisRef> axes) {
  GraphBuilder& b = emitter.builder();
  std::vector<int64_t> dims(b.shape(part)->dims().begin(), b.shape(part)->dims().end());
  if (dim < 0) {
    dims.insert(dims.begin(), 1);
    return emitter.AllGather(b.Reshape(part, dims), 0, axes);
  }
  const int64_t n = AxesSize(axes);
  dims[dim] /= n;
  dims.insert(dims.begin() + dim, n);
  return GroupCollectives(emitter, emitter.Groups(axes)).AllToAll(b.Reshape(part, dims), dim);
}

LocalIds EmitMerged(OpBuilder& ops, const LocalOp& op, absl::Span<const AxisRef> axes) {
  GraphBuilder& b = ops.builder();
  const int k = static_cast<int>(op.operands.size()) / 2;
  LocalIds operands = op.operands;
  const auto& dimensions = op.instr.as<ReduceAttrs>().dimensions;
  for (int t = 0; t < k; ++t) {
    std::vector<int> reduced(dimensions.begin(), dimensions.end());
    operands[t] = ops.emitter().MaskPadding(operands[t], op.operand_shapes[t],
                                            *op.decision.operands[t], reduced, operands[k + t]);
  }
  LocalIds parts = ops.Clone(op, operands);
  int widest = 0;
  for (InstrId part : parts) widest = std::max(widest, ElementTypeBits(b.type(part)));
  const int tiled = TiledDim(b.shape(parts[0])->dims(), widest, AxesSize(axes));
  LocalOp merge = op;
  for (int t = 0; t < k; ++t) {
    ops.emitter().set_cause_index(t);
    parts[t] = BringTogether(ops.emitter(), parts[t], tiled, axes);
    if (tiled < 0) continue;
    std::vector<int64_t> tile(merge.result_shapes[t]->dims().begin(),
                              merge.result_shapes[t]->dims().end());
    tile[tiled] /= AxesSize(axes);
    merge.result_shapes[t] = ops.context().MakeArray(b.type(parts[t]), tile);
  }
  parts.insert(parts.end(), op.operands.begin() + k, op.operands.end());
  ReduceAttrs attrs = op.instr.as<ReduceAttrs>();
  const int64_t merged[] = {std::max(tiled, 0)};
  attrs.dimensions = merged;
  attrs.to_apply = ops.CopyComputation(attrs.to_apply);
  LocalIds results = ops.Clone(merge, parts, InternAttributes(ops.context(), attrs));
  if (tiled < 0) return results;
  for (int t = 0; t < k; ++t) {
    ops.emitter().set_cause_index(t);
    results[t] = ops.emitter().AllGather(results[t], tiled, axes);
  }
  return results;
}

LocalIds Emit(OpBuilder& ops, const LocalOp& op) {
  const AxisList merged = MergedAxes(*op.decision.rule, op.decision.factor_axes);
  if (AxesSize(merged) > 1) return EmitMerged(ops, op, merged);
  LocalIds operands = op.operands;
  const int k = static_cast<int>(operands.size()) / 2;
  bool partial = false;
  for (const Sharding* s : op.decision.produced) partial = partial || !s->partial().empty();
  if (!partial) return ops.Clone(op, operands);
  // Reduction factors are sharded only if the reducer is a recognised monoid.
  Opcode monoid = Opcode::kAdd;
  SHARDCALL_CHECK(RecognizeMonoid(ops.global(), op.instr.as<ReduceAttrs>().to_apply, &monoid));
  GraphBuilder& b = ops.builder();
  std::vector<std::pair<int, InstrId>> starts;
  for (int t = 0; t < k; ++t) {
    const ElementType type = b.type(operands[t]);
    const std::vector<int> dims = UnevenReduced(op, t);
    if (!dims.empty()) {
      operands[t] =
          ops.emitter().MaskPadding(operands[t], op.operand_shapes[t], *op.decision.operands[t],
                                    dims, b.Identity(monoid, type, ZeroSign::kExact));
    }
    // Each shard starts from the identity. Another init counts on one device only, unless it may
    // count twice, and is combined after the reduce: XLA drops an init where a shard has one
    // element to reduce.
    if (!IsIdentityConstant(ops.local(), operands[k + t], monoid)) {
      const Sharding* made = op.decision.produced[t];
      starts.emplace_back(
          t, IsIdempotent(monoid)
                 ? operands[k + t]
                 : ops.emitter().OnFirst(operands[k + t], made->partial(), made->partial_op()));
      operands[k + t] = b.Identity(monoid, type, ZeroSign::kExact);
    }
  }
  LocalIds results = ops.Clone(op, operands);
  for (const auto& [t, start] : starts) {
    results[t] = b.Binary(monoid, b.BroadcastScalar(start, b.shape(results[t])), results[t]);
  }
  return results;
}

}  // namespace

constexpr Strategy kReduceStrategy{
    .name = "masked reduction", .crosses = Crosses, .complete = Complete, .emit = Emit};

}  // namespace internal
}  // namespace shardcall
