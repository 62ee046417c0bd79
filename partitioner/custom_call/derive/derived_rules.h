// SPDX-License-Identifier: Apache-2.0
// Rules that follow from a target's rule: those of its call under vmap and in a scan, and that of
// its VJP. They take registered alternatives, whose `values` are filled.
//
//   rule               "m k, k -> m"   k summed
//   vmap over x alone  "b m k, k -> b m"
//   vmap over both     "b m k, b k -> b m"
//   scan over both     likewise, but b needs replication: the steps run one after another
//   VJP (dy, x, w)     "m, m k, k -> m k, k"   m summed (dw), k passes
#ifndef SHARDCALL_PARTITIONER_CUSTOM_CALL_DERIVE_DERIVED_RULES_H_
#define SHARDCALL_PARTITIONER_CUSTOM_CALL_DERIVE_DERIVED_RULES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "shardcall/partitioner/custom_call/registry.h"
#include "shardcall/sharding/base/public.h"

namespace shardcall SHARDCALL_PUBLIC {

// Adds one leading factor to all results and to the operands that `batched` names (one flag per
// operand, at least one of them set). A rule whose `...` is on exactly those operands is returned
// unchanged. Errors E117: `...` on other operands, or a wrong number of flags.
absl::StatusOr<RuleAlternative> BatchedRule(const RuleAlternative& rule,
                                            const std::vector<bool>& batched);

// Whether the rule of such a call has `...` on all results and exactly on the operands that
// `batched` names, and is the rule of the call with one more dimension there, too: the batched form
// is then a call of the same target.
bool TakesBatch(const TargetRule& rule, absl::string_view backend_config,
                absl::Span<const Shape* const> operands, absl::Span<const Shape* const> results,
                const std::vector<bool>& batched);

// The rule for the stacked operands and results of a loop that makes one call per step: the
// leading factor needs replication, the others keep their kinds. Errors E117.
absl::StatusOr<RuleAlternative> ScannedRule(const RuleAlternative& rule,
                                            const std::vector<bool>& stacked);

// Pass-through factors and sums are independent in the VJP too: a gradient that has the factor is
// sharded by it, and one that lacks it is a sum over the factor. Factors of other reductions (max,
// min, ..), permutation factors and need-replication factors need replication. Where a gradient
// lacks the `...` of other values, there is one rule for each number of dimensions from 0 to 5
// that `...` may stand for. Types are left out where those of the arguments do not give all of the
// gradients'. Attributes follow the shard as those of the call do, where the VJP has the factors
// that they follow from, and stay those of the whole call elsewhere.
//
// A sum over a factor that is unevenly sharded needs a padding value that adds nothing. The VJP
// declares it (VjpSpec::pad), or it follows from the pad p of the rule. Padding p leaves the
// result unchanged whatever the other operands are, so the derivatives with respect to them are 0
// there, and a cotangent of 0 adds nothing. So p also holds for the VJP if p is 0 or if no
// cotangent that the VJP takes has the factor. Errors E116: an argument or a gradient for which
// the rule has no operand or result.
absl::StatusOr<std::vector<RuleAlternative>> TransposedRules(const RuleAlternative& rule,
                                                             const VjpSpec& vjp);
// Whether a call of the VJP with the rule `transposed` shows all that tells a call with `rule` from
// others: all shapes and types, and the attributes.
bool VjpShowsCall(const RuleAlternative& rule, const VjpSpec& vjp,
                  const RuleAlternative& transposed);
// The target of whose VJP this is the rule, as it follows from the target's own; empty if somebody
// registered it.
absl::string_view VjpOf(const TargetRule& rule);

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_CUSTOM_CALL_DERIVE_DERIVED_RULES_H_
