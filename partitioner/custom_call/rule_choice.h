// SPDX-License-Identifier: Apache-2.0
// Which of a target's signatures a call has. One is narrower than another if the other fits each
// call that it fits, but not the other way round: "i j -> i j" is narrower than "... j -> ... j",
// and one with types or attributes than the same without. Of the signatures that fit a call the
// narrowest is its rule, whatever the order in which they were given.
#ifndef SHARDCALL_PARTITIONER_CUSTOM_CALL_RULE_CHOICE_H_
#define SHARDCALL_PARTITIONER_CUSTOM_CALL_RULE_CHOICE_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "shardcall/partitioner/custom_call/registry.h"

namespace shardcall {
inline namespace internal {

// Whether a call with this backend_config has the signature: as many operands and results, of the
// ranks that it says, with ellipses of one name alike, and, where types bind, of its types. With
// `results` null, whether it has it with some results.
bool FitsCall(const RuleAlternative& a, bool types_bind, absl::string_view backend_config,
              absl::Span<const Shape* const> operands,
              const absl::Span<const Shape* const>* results);
// E111 for a call that no rule of the target fits. `results` null: they are not known.
absl::Status NoRuleFits(const TargetRule& rule, absl::string_view backend_config,
                        absl::Span<const Shape* const> operands,
                        const absl::Span<const Shape* const>* results);

// What RuleAlternative::types says: as it was read on registration, else read now. Errors: E110.
absl::StatusOr<std::shared_ptr<const ParsedTypes>> TypesOf(const RuleAlternative& a);

// Whether some call fits both. Functions `applies` that differ are taken to exclude each other.
bool Overlap(const RuleAlternative& a, const RuleAlternative& b);
// Whether each call that fits `a` fits `b`; false where that is not certain.
bool IsWithin(const RuleAlternative& a, const RuleAlternative& b);

// Whether each call whose operands and attributes fit `a` is one whose operands and attributes fit
// `b`, and not the other way round: of the two, `a` is the rule of a call whose results are not
// known.
bool IsNarrowerInOperands(const RuleAlternative& a, const RuleAlternative& b);

// Puts narrower signatures in front of wider ones, and keeps the order of the others. E105 where
// two overlap and neither is narrower: a call that fits both has no rule.
absl::Status OrderSignatures(absl::string_view target, absl::string_view source,
                             std::vector<RuleAlternative>* alternatives);

// The same for rules that need not be told apart: where two overlap, either will do.
void PutNarrowerFirst(std::vector<RuleAlternative>* alternatives);

// `"i j -> i j" need_replication={j} types "f32 -> f32" when {mode = "gelu"}`.
std::string DescribeSignature(const RuleAlternative& a);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_CUSTOM_CALL_RULE_CHOICE_H_
