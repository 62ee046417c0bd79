// SPDX-License-Identifier: Apache-2.0
// Rules that follow from a target's rule: of its call under vmap, in a scan, and
// of its VJP. They take registered alternatives, whose `values` are filled.
//
//   rule               "m k, k -> m"   k summed
//   vmap over x alone  "b m k, k -> b m"
//   vmap over both     "b m k, b k -> b m"
//   scan over both     likewise, b whole: one step after another
//   VJP (dy, x, w)     "m, m k, k -> m k, k"   m summed (dw), k passes
#ifndef SHARDCALL_PARTITIONER_CUSTOM_CALL_DERIVE_DERIVED_RULES_H_
#define SHARDCALL_PARTITIONER_CUSTOM_CALL_DERIVE_DERIVED_RULES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "shardcall/partitioner/custom_call/registry.h"
#include "shardcall/sharding/base/public.h"

namespace shardcall SHARDCALL_PUBLIC {

// One more leading factor on all results and on the operands that `batched`
// names (one flag an operand, one of them set). A rule whose `...` stand where
// the flags do is its own. Errors E117: `...` on others than those, or another
// number of flags.
absl::StatusOr<RuleAlternative> BatchedRule(const RuleAlternative& rule,
                                            const std::vector<bool>& batched);

// The stacked operands and results of a loop that makes one call a step: the
// leading factor needs replication, the others keep their kinds. Errors E117.
absl::StatusOr<RuleAlternative> ScannedRule(const RuleAlternative& rule,
                                            const std::vector<bool>& stacked);

// What passes, and what is summed, is independent in the VJP too: a gradient that
// has the factor has its own part of it, one that lacks it is a sum over the
// parts. Largest and least, permutations and what is whole stay whole. Where a
// gradient lacks the `...` of the others, there is one rule for each number of
// dimensions that `...` may stand for, up to 5.
//
// A sum over an uneven factor needs to know what padding adds nothing. The VJP says
// so itself (VjpSpec::pad), or it follows from a pad p of the rule: what leaves the
// result as it is whatever the other operands are has no derivative by them, and a
// cotangent of 0 adds nothing; so p is the VJP's too, where it takes no cotangent
// that has the factor, or where p is 0. Errors E116: an argument or a gradient that the rule has
// no operand or result for.
absl::StatusOr<std::vector<RuleAlternative>> TransposedRules(const RuleAlternative& rule,
                                                             const VjpSpec& vjp);

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_CUSTOM_CALL_DERIVE_DERIVED_RULES_H_
