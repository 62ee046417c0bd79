// SPDX-License-Identifier: Apache-2.0
// Rules of moe_positions, moe_dispatch and moe_combine. Experts e and their places c may be
// sharded: choices are made relative to the device's first expert and place, and the kernel skips
// those out of range. In moe_dispatch, tokens t and choices a are reduction factors: each device
// dispatches its own tokens, and the results are summed (exactly, since a place has at most one
// token). In moe_combine, e, c and a are reduction factors.
#include <vector>

#include "shardcall/partitioner/custom_call/rule_callbacks.h"
#include "shardcall/partitioner/custom_call/targets/shipped_targets.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace {

// Calls the target with choices relative to this device's experts and places.
absl::StatusOr<std::vector<InstrId>> OwnChoices(LocalCall& call,
                                                absl::Span<const InstrId> operands) {
  std::vector<InstrId> local(operands.begin(), operands.end());
  SHARDCALL_ASSIGN_OR_RETURN(local[1], call.LocalIndices(local[1], "e"));
  SHARDCALL_ASSIGN_OR_RETURN(local[2], call.LocalIndices(local[2], "c"));
  return call.CallTarget(local);
}

}  // namespace

absl::Status RegisterMoeTargets(TargetRegistry& registry) {
  const PartialOp sum = PartialOp::kSum;
  // Padding of tokens and choices gets expert -1, which chooses none.
  SHARDCALL_RETURN_IF_ERROR(
      RegisterRuleWithBody(registry, "moe_dispatch",
                           {{.text = {.rule = "... t d, ... t a, ... t a -> ... e c d",
                                      .reduction = {{"t", sum}, {"a", sum}},
                                      .pad = {{"t", -1}, {"a", -1}}},
                             .types = "T, s32, s32 -> T"}},
                           OwnChoices, "built in"));
  SHARDCALL_RETURN_IF_ERROR(
      RegisterRuleWithBody(registry, "moe_combine",
                           {{.text = {.rule = "... e c d, ... t a, ... t a, ... t a -> ... t d",
                                      .reduction = {{"e", sum}, {"c", sum}, {"a", sum}},
                                      .pad = {{"a", -1}}},
                             .types = "T, s32, s32, T -> T | T, s32, s32, f32 -> T"}},
                           OwnChoices, "built in"));
  // A place depends on all earlier choices.
  return registry.RegisterRules(
      "moe_positions",
      {{.text = {.rule = "... t a -> ... t a", .need_replication = {"t", "a"}},
        .example_configs = {"{choices_first = false}", "{choices_first = true}"},
        .types = "s32 -> s32"}},
      "", "built in");
}

}  // namespace internal
}  // namespace shardcall
