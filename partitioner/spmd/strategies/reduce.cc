// SPDX-License-Identifier: Apache-2.0
// Reduce over a sharded dimension: padding is set to the identity, and another init value is
// counted once. Where the reducer selects (an argmax), each device reduces its shard, and the
// results of all shards are gathered and reduced once more.
#include <vector>

#include "shardcall/partitioner/ir/analysis/identity_constant.h"
#include "shardcall/partitioner/ir/monoid.h"
#include "shardcall/partitioner/spmd/localize/op_builder.h"
#include "shardcall/partitioner/spmd/plan/strategy.h"
#include "shardcall/partitioner/spmd/strategies/parts/masked.h"
#include "shardcall/sharding/base/status.h"
#include "shardcall/sharding/reshard/reshard.h"

namespace shardcall {
inline namespace internal {
namespace {

// The axes of the factors whose shards are reduced by selection.
AxisList SelectedAxes(const ShardingRule& rule,
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

bool Complete(const OpQuery& op, Candidate* c) {
  const AxisList axes = SelectedAxes(*op.rule, c->axes);
  const int64_t n = AxesSize(axes);
  if (n == 1) return true;
  for (size_t k = 0; k < c->produced.size(); ++k) {
    const double local = LocalBytes(op.result(static_cast<int>(k)), *c->produced[k]);
    c->AddEmitted(op.module.context(), static_cast<double>(n - 1) * local, *c->produced[k]->mesh(),
                  axes);
  }
  return true;
}

LocalIds EmitSelected(OpBuilder& ops, const LocalOp& op, absl::Span<const AxisRef> axes) {
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
  for (int t = 0; t < k; ++t) {
    const Shape* shape = b.shape(parts[t]);
    std::vector<int64_t> dims = {1};
    dims.insert(dims.end(), shape->dims().begin(), shape->dims().end());
    CollectiveCause cause = ops.emitter().cause();
    cause.index = t;
    ops.emitter().set_cause(cause);
    parts[t] = ops.emitter().AllGather(b.Reshape(parts[t], dims), 0, axes);
  }
  parts.insert(parts.end(), op.operands.begin() + k, op.operands.end());
  ReduceAttrs attrs = op.instr.as<ReduceAttrs>();
  const int64_t first[] = {0};
  attrs.dimensions = first;
  attrs.to_apply = ops.CopyComputation(attrs.to_apply);
  return ops.Clone(op, parts, InternAttributes(ops.context(), attrs));
}

LocalIds Emit(OpBuilder& ops, const LocalOp& op) {
  const AxisList selected = SelectedAxes(*op.decision.rule, op.decision.factor_axes);
  if (AxesSize(selected) > 1) return EmitSelected(ops, op, selected);
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
