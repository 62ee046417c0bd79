// SPDX-License-Identifier: Apache-2.0
// An op that needs a dimension whole (sort, FFT, a scan of matrices) runs on shards of another
// dimension: an all-to-all moves the axes there, and another one moves them back if the result is
// wanted as before. Each device sends 1/n of its shard n-1 times, where an all-gather would bring
// it the whole operand.
//
// Example: sort along dim 0 of f32[64,32] that is sharded [{"x"}, {}] runs on [{}, {"x"}].
#include "shardcall/partitioner/spmd/localize/op_builder.h"
#include "shardcall/partitioner/spmd/plan/strategy.h"

namespace shardcall {
inline namespace internal {
namespace {

// The axes that `leading` states have on factors that the op cannot have sharded.
AxisList AxesInTheWay(const ShardingRule& rule, const IndexSet& allowed,
                      absl::Span<const LeadingState> leading, const BaseMesh* mesh) {
  AxisList out;
  for (const LeadingState& l : leading) {
    if (l.state->mesh() != mesh || l.state->is_maximal()) continue;
    ProjectOntoFactors(
        rule.tensor(l.tensor), *l.state, [&](int f) { return rule.Extent(l.tensor, f); },
        [&](int f, absl::Span<const AxisRef> axes) {
          if (allowed.Contains(f)) return;
          for (AxisRef a : axes) {
            if (!Overlaps({a}, out)) out.push_back(a);
          }
        });
  }
  return out;
}

Assignments Propose(const ShardingRule& rule, const IndexSet& allowed,
                    absl::Span<const LeadingState> leading, const FactorAssignment& from) {
  Assignments out;
  const AxisList axes = AxesInTheWay(rule, allowed, leading, from.mesh());
  if (axes.empty()) return out;
  for (int f = 0; f < static_cast<int>(rule.factors.size()); ++f) {
    const FactorKind kind = rule.factors[f].kind;
    const bool keeps = kind == FactorKind::kPassThrough || kind == FactorKind::kPermutation;
    if (!allowed.Contains(f) || !keeps) continue;
    FactorAssignment moved = from;
    moved.Extend(f, axes);
    moved.Normalize();
    // Only even shards: padding costs work, and not every kernel supports it.
    if (moved == from || rule.factors[f].size % AxesSize(moved.axes()[f]) != 0) continue;
    out.push_back(std::move(moved));
  }
  return out;
}

// On the shards that it moves to, the op runs as it would if its operands had come so.
const Strategy& Own(const OpQuery& op) {
  return OwnStrategy(op.instr().opcode, op.body != nullptr);
}
bool Crosses(const OpQuery& op, int f) {
  const auto crosses = Own(op).crosses;
  return crosses != nullptr && crosses(op, f);
}
bool Complete(const OpQuery& op, Candidate* c) {
  const auto complete = Own(op).complete;
  return complete == nullptr || complete(op, c);
}
double Seconds(const CostModel& cost, const Module& module, const Instruction& instr,
               const Decision& decision) {
  return StrategySeconds(StrategyOf(instr.opcode), cost, module, instr, decision);
}

LocalIds Emit(OpBuilder& ops, const LocalOp& op) {
  return OwnStrategy(op.instr.opcode, ops.rules().body(op.id) != nullptr).emit(ops, op);
}

}  // namespace

constexpr Strategy kMovedStrategy{.name = "moved",
                                  .crosses = Crosses,
                                  .complete = Complete,
                                  .seconds = Seconds,
                                  .propose = Propose,
                                  .emit = Emit};

}  // namespace internal
}  // namespace shardcall
