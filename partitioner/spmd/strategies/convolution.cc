// SPDX-License-Identifier: Apache-2.0
// Convolution. Along a sharded spatial dimension each device gets what the windows of its tile of
// the result see, with zeros around the whole operand. Padding of uneven contracted dimensions is
// set to zero. Sharded groups become fewer groups.
#include <algorithm>

#include "shardcall/partitioner/ir/shapes/dim_labels.h"
#include "shardcall/partitioner/spmd/localize/op_builder.h"
#include "shardcall/partitioner/spmd/plan/strategy.h"
#include "shardcall/partitioner/spmd/strategies/parts/exchanged.h"
#include "shardcall/partitioner/spmd/strategies/parts/products.h"
#include "shardcall/partitioner/spmd/strategies/parts/sharded_window.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace {

DimLabels Labels(const Instruction& instr) {
  DimLabels labels;
  SHARDCALL_CHECK(ParseDimLabels(instr.as<ConvolutionAttrs>().dim_labels, &labels));
  return labels;
}

bool Crosses(const OpQuery& op, int f) {
  return op.shapes.size() == 2 && DimOfFactor(*op.rule, 0, f) >= 0;
}

// The window dimension that slides over dimension d of the operand, or -1.
int WindowDim(const DimLabels& labels, int d) {
  for (size_t s = 0; s < labels.lhs.spatial.size(); ++s) {
    if (labels.lhs.spatial[s] == d) return static_cast<int>(s);
  }
  return -1;
}

// How the window slides where spatial dimension `s` is sharded by a permutation factor, shared with
// the result, or by a reduction factor, shared with the kernel.
std::optional<ShardedWindow> WindowOf(const Instruction& instr, const DimLabels& labels,
                                      const Shape* lhs, const ShardingRule& rule, int s,
                                      int64_t shards) {
  const Window& w = instr.as<ConvolutionAttrs>().window;
  const int d = static_cast<int>(labels.lhs.spatial[s]);
  const int64_t places = instr.shape->dim(static_cast<int>(labels.out.spatial[s]));
  return FactorOfDim(rule, 0, d).kind == FactorKind::kReduction
             ? WindowOfKernelTile(w, s, lhs->dim(d), places, shards)
             : WindowOfResultTile(w, s, lhs->dim(d), places, shards);
}

bool Complete(const OpQuery& op, Candidate* c) {
  if (op.shapes.size() != 2) return true;
  const Sharding& lhs = *c->operands[0];
  const DimLabels labels = Labels(op.instr());
  for (size_t s = 0; s < labels.lhs.spatial.size(); ++s) {
    const int d = static_cast<int>(labels.lhs.spatial[s]);
    if (!lhs.IsDimSharded(d)) continue;
    if (FactorOfDim(*op.rule, 0, d).kind == FactorKind::kPassThrough) continue;
    const auto window = WindowOf(op.instr(), labels, op.shapes[0], *op.rule, static_cast<int>(s),
                                 lhs.num_shards(d));
    if (!window.has_value()) return false;
    c->exchanges.push_back({0, d, window->ranges});
  }
  return true;
}

// The number of groups on a shard: the groups are the major factor of dimension d of the operand.
int64_t LocalGroups(const LocalOp& op, int64_t groups, int d) {
  if (groups == 1) return 1;
  const int f = op.decision.rule->operands[0].dims[d][0];
  return CeilDiv(groups, AxesSize(op.decision.factor_axes[f]));
}

LocalIds Emit(OpBuilder& ops, const LocalOp& op) {
  if (op.operands.size() != 2) return ops.Clone(op, op.operands);
  GraphBuilder& b = ops.builder();
  const DimLabels labels = Labels(op.instr);
  ConvolutionAttrs attrs = op.instr.as<ConvolutionAttrs>();
  LocalIds operands = op.operands;
  operands[0] = FilledOutside(ops, op, 0, b.Zero(b.type(operands[0])));
  MaskContracted(ops, op, &operands);
  ChangedWindow window(attrs.window);
  absl::InlinedVector<Surplus, 2> surplus;
  for (const Exchange& e : op.decision.exchanges) {
    const int s = WindowDim(labels, e.dim);
    const ShardedWindow on_shards = *WindowOf(op.instr, labels, op.operand_shapes[0],
                                              *op.decision.rule, s, e.ranges.num_shards);
    window.SetPadding(s, on_shards);
    if (on_shards.surplus > 0) {
      surplus.push_back({static_cast<int>(labels.out.spatial[s]), on_shards.surplus,
                         op.decision.operands[0]->dim(e.dim), on_shards.begins});
    }
    window.SetSize(s, b.shape(operands[1])->dim(static_cast<int>(labels.rhs.spatial[s])));
  }
  attrs.window = window.window();
  attrs.feature_group_count = LocalGroups(op, attrs.feature_group_count, labels.lhs.feature);
  attrs.batch_group_count = LocalGroups(op, attrs.batch_group_count, labels.lhs.batch);
  return CloneAndCut(ops, op, operands, InternAttributes(ops.context(), attrs), surplus);
}

// The spatial dimensions of operand and kernel share a reduction factor, and the result is whole
// along them: the gradient of a kernel, whose window is as large as the operand, sums over it.
bool SumRule(const OpQuery& op, ShardingRule* rule) {
  if (op.shapes.size() != 2) return false;
  const DimLabels labels = Labels(op.instr());
  *rule = *op.rule;
  bool any = false;
  for (size_t s = 0; s < labels.lhs.spatial.size(); ++s) {
    const int d = static_cast<int>(labels.lhs.spatial[s]);
    const int k = static_cast<int>(labels.rhs.spatial[s]);
    const int o = static_cast<int>(labels.out.spatial[s]);
    if (op.shapes[1]->dim(k) <= 1 || op.rule->operands[0].dims[d].empty()) continue;
    const int f = op.rule->operands[0].dims[d][0];
    if (op.rule->factors[f].kind != FactorKind::kPermutation) continue;
    if (!SumOverDim(op, 0, d, 0, o, rule)) continue;
    any = true;
    rule->operands[1].dims[k] = {f};
    if (op.shapes[1]->dim(k) != op.shapes[0]->dim(d)) {
      rule->extents.push_back({{1, f}, op.shapes[1]->dim(k)});
      std::sort(rule->extents.begin(), rule->extents.end());
    }
  }
  return any;
}

}  // namespace

constexpr Strategy kConvolutionStrategy{.name = "halo exchange of a convolution",
                                        .crosses = Crosses,
                                        .complete = Complete,
                                        .seconds = SecondsOfProducts,
                                        .emit = Emit};
constexpr Strategy kConvolutionSumStrategy{.name = "halo exchange and sum of a convolution",
                                           .rule = SumRule,
                                           .crosses = Crosses,
                                           .complete = Complete,
                                           .seconds = SecondsOfProducts,
                                           .emit = Emit};

}  // namespace internal
}  // namespace shardcall
