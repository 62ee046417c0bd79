// SPDX-License-Identifier: Apache-2.0
// Reduce-window along a sharded dimension: each device gets what the windows of its tile of the
// result see. Around the whole operand windows see nothing: there the exchanged operand has the
// identity, or, where the reducer selects, the initial value, which each window has anyway.
#include "shardcall/partitioner/ir/analysis/selecting_reducer.h"
#include "shardcall/partitioner/ir/monoid.h"
#include "shardcall/partitioner/spmd/localize/op_builder.h"
#include "shardcall/partitioner/spmd/plan/strategy.h"
#include "shardcall/partitioner/spmd/strategies/parts/exchanged.h"
#include "shardcall/partitioner/spmd/strategies/parts/sharded_window.h"

namespace shardcall {
inline namespace internal {
namespace {

std::optional<ShardedWindow> WindowOf(const Instruction& instr, const Shape* in, const Sharding& s,
                                      int d) {
  return WindowOfResultTile(instr.as<ReduceWindowAttrs>().window, d, in->dim(d),
                            instr.shape->leaf(0)->dim(d), s.num_shards(d));
}

// Whether there is a value that windows do not notice.
bool HasNeutral(const OpQuery& op) {
  const CompId reducer = op.instr().as<ReduceWindowAttrs>().to_apply;
  PartialOp known;
  if (op.shapes.size() == 2 && RecognizePartialOp(op.module, reducer, &known)) {
    return HasIdentity(known, op.shapes[0]->element_type());
  }
  return IsSelectingReducer(op.module, reducer);
}

// A window as long as the dimension (a cumulative sum) would need the whole dimension as halo.
bool Crosses(const OpQuery& op, int f) {
  const int d = DimOfFactor(*op.rule, 0, f);
  return d >= 0 && op.instr().as<ReduceWindowAttrs>().window.size[d] < op.shapes[0]->dim(d);
}

bool Complete(const OpQuery& op, Candidate* c) {
  const int inputs = static_cast<int>(op.shapes.size()) / 2;
  const Sharding& s = *c->operands[0];
  for (int d = 0; d < s.rank(); ++d) {
    if (!s.IsDimSharded(d)) continue;
    if (FactorOfDim(*op.rule, 0, d).kind != FactorKind::kPermutation) continue;
    const auto window = WindowOf(op.instr(), op.shapes[0], s, d);
    if (!window.has_value() || (window->ranges.LeavesBounds() && !HasNeutral(op))) return false;
    for (int k = 0; k < inputs; ++k) c->exchanges.push_back({k, d, window->ranges});
  }
  return true;
}

LocalIds Emit(OpBuilder& ops, const LocalOp& op) {
  if (op.decision.exchanges.empty()) return ops.Clone(op, op.operands);
  const int inputs = static_cast<int>(op.operands.size()) / 2;
  ReduceWindowAttrs attrs = op.instr.as<ReduceWindowAttrs>();
  ChangedWindow window(attrs.window);
  LocalIds operands = op.operands;
  Opcode monoid;
  const bool known = inputs == 1 && RecognizeMonoid(ops.global(), attrs.to_apply, &monoid);
  for (int k = 0; k < inputs; ++k) {
    const InstrId neutral =
        known ? ops.builder().Identity(monoid, ops.builder().type(operands[k]), ZeroSign::kExact)
              : operands[inputs + k];
    operands[k] = FilledOutside(ops, op, k, neutral);
  }
  absl::InlinedVector<Surplus, 2> surplus;
  const Sharding& s = *op.decision.operands[0];
  for (const Exchange& e : op.decision.exchanges) {
    if (e.operand != 0) continue;
    const ShardedWindow on_shards = *WindowOf(op.instr, op.operand_shapes[0], s, e.dim);
    window.SetPadding(e.dim, on_shards);
    if (on_shards.surplus == 0) continue;
    surplus.push_back({e.dim, on_shards.surplus, s.dim(e.dim), on_shards.begins});
  }
  attrs.window = window.window();
  attrs.to_apply = ops.CopyComputation(attrs.to_apply);
  return CloneAndCut(ops, op, operands, InternAttributes(ops.context(), attrs), surplus);
}

}  // namespace

constexpr Strategy kReduceWindowStrategy{
    .name = "halo exchange of a window", .crosses = Crosses, .complete = Complete, .emit = Emit};

}  // namespace internal
}  // namespace shardcall
