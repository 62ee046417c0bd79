// SPDX-License-Identifier: Apache-2.0
// Rules of softmax_cross_entropy and its gradient. The vocabulary v may be sharded: each device
// computes the maximum, the sum of exponentials and the label's logit of its shard. Three
// all-reduces of one value per row, rather than of logits, combine them.
#include <limits>
#include <utility>
#include <vector>

#include "shardcall/partitioner/custom_call/rule_callbacks.h"
#include "shardcall/partitioner/custom_call/targets/shipped_targets.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace {

using Alternatives = std::vector<RuleAlternative>;

// Combines the shards with m = the maximum of their maxima: lse = m + log(sum of sum_i * exp(max_i
// - m)).
absl::StatusOr<std::vector<InstrId>> Loss(LocalCall& call, absl::Span<const InstrId> operands) {
  if (!call.IsSharded("v")) return call.CallTarget(operands);
  CheckedBuilder& b = call.builder();
  SHARDCALL_ASSIGN_OR_RETURN(const InstrId labels, call.LocalIndices(operands[1], "v"));
  const Shape* row = call.LocalResult(0);
  SHARDCALL_ASSIGN_OR_RETURN(
      const std::vector<InstrId> parts,  // maximum, sum, the label's logit
      call.MakeCall("softmax_cross_entropy_shard", "", {operands[0], labels}, {row, row, row}));
  SHARDCALL_ASSIGN_OR_RETURN(const InstrId most, call.AllReduce(parts[0], PartialOp::kMax, "v"));
  // If all logits of a shard are -inf, its sum is 0, though exp(-inf - m) may be NaN.
  SHARDCALL_ASSIGN_OR_RETURN(const InstrId over, b.Add(Opcode::kSubtract, {parts[0], most}));
  SHARDCALL_ASSIGN_OR_RETURN(const InstrId scale, b.Add(Opcode::kExponential, {over}));
  SHARDCALL_ASSIGN_OR_RETURN(const InstrId scaled, b.Add(Opcode::kMultiply, {parts[1], scale}));
  SHARDCALL_ASSIGN_OR_RETURN(InstrId zero, b.ConstantInt(b.type(scaled), 0));
  SHARDCALL_ASSIGN_OR_RETURN(zero, b.BroadcastScalar(zero, b.shape(scaled)));
  SHARDCALL_ASSIGN_OR_RETURN(const InstrId empty, b.Compare(Direction::kEq, parts[1], zero));
  SHARDCALL_ASSIGN_OR_RETURN(const InstrId part, b.Add(Opcode::kSelect, {empty, zero, scaled}));
  SHARDCALL_ASSIGN_OR_RETURN(const InstrId sum, call.AllReduce(part, PartialOp::kSum, "v"));
  SHARDCALL_ASSIGN_OR_RETURN(const InstrId label, call.AllReduce(parts[2], PartialOp::kSum, "v"));
  SHARDCALL_ASSIGN_OR_RETURN(const InstrId log, b.Add(Opcode::kLog, {sum}));
  SHARDCALL_ASSIGN_OR_RETURN(const InstrId lse, b.Add(Opcode::kAdd, {log, most}));
  // Add log to m - label, rather than computing lse - label: if the label has the largest logit,
  // that would lose digits to cancellation.
  SHARDCALL_ASSIGN_OR_RETURN(const InstrId behind, b.Add(Opcode::kSubtract, {most, label}));
  SHARDCALL_ASSIGN_OR_RETURN(const InstrId loss, b.Add(Opcode::kAdd, {log, behind}));
  std::vector<InstrId> out = {loss};
  if (call.call().results.size() > 1) out.push_back(lse);
  return out;
}

// The gradient of each logit is local; only the label is made relative to the shard.
absl::StatusOr<std::vector<InstrId>> Gradient(LocalCall& call, absl::Span<const InstrId> operands) {
  std::vector<InstrId> local(operands.begin(), operands.end());
  SHARDCALL_ASSIGN_OR_RETURN(local[2], call.LocalIndices(local[2], "v"));
  return call.CallTarget(local);
}

}  // namespace

absl::Status RegisterLossTargets(TargetRegistry& registry) {
  // A padding logit of -inf adds nothing to the sum.
  const std::vector<std::pair<std::string, double>> pad = {
      {"v", -std::numeric_limits<double>::infinity()}};
  // Results per row are f64 for f64 logits, f32 for all other types.
  SHARDCALL_RETURN_IF_ERROR(RegisterRuleWithBody(
      registry, "softmax_cross_entropy",
      Alternatives{{.text = {.rule = "... v, ... -> ...", .pad = pad},
                    .types = "f64, s32 -> f64 | f64, s64 -> f64 | T, s32 -> f32 | T, s64 -> f32"},
                   {.text = {.rule = "... v, ... -> ..., ...", .pad = pad},
                    .types = "f64, s32 -> f64, f64 | f64, s64 -> f64, f64 | "
                             "T, s32 -> f32, f32 | T, s64 -> f32, f32"}},
      Loss, "built in"));
  SHARDCALL_RETURN_IF_ERROR(
      RegisterRuleWithBody(registry, "softmax_cross_entropy_bwd",
                           Alternatives{{.text = {.rule = "..., ... v, ..., ... -> ... v"},
                                         .types = "F, T, s32, F -> T | F, T, s64, F -> T"}},
                           Gradient, "built in"));
  // For calls that return lse too.
  SHARDCALL_RETURN_IF_ERROR(registry.RegisterVjp(
      "softmax_cross_entropy", {.target = "softmax_cross_entropy_bwd",
                                .arguments = {VjpArgument::Cotangent(0), VjpArgument::Operand(0),
                                              VjpArgument::Operand(1), VjpArgument::Result(1)},
                                .gradients = {0}}));
  return registry.RegisterRules(
      "softmax_cross_entropy_shard",
      {{.text = {.rule = "... v, ... -> ..., ..., ...", .need_replication = {"v"}},
        .types = "f64, s32 -> f64, f64, f64 | f64, s64 -> f64, f64, f64 | "
                 "T, s32 -> f32, f32, f32 | T, s64 -> f32, f32, f32"}},
      "", "built in");
}

}  // namespace internal
}  // namespace shardcall
