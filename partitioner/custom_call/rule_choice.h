// SPDX-License-Identifier: Apache-2.0
// Which of a target's signatures a call has. One is narrower than another if the other fits each
// call that it fits, but not the other way round: "i j -> i j" is narrower than "... j -> ... j",
// and one with types or attributes than the same without. Of the signatures that fit a call the
// narrowest is its rule, whatever the order in which they were given.
#ifndef SHARDCALL_PARTITIONER_CUSTOM_CALL_RULE_CHOICE_H_
#define SHARDCALL_PARTITIONER_CUSTOM_CALL_RULE_CHOICE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "shardcall/partitioner/custom_call/registry.h"

namespace shardcall::inline internal {

// Whether a call has as many operands and results as the signature, of the ranks that it says, with
// ellipses of one name alike.
bool FitsRanks(const RuleAlternative& a, absl::Span<const Shape* const> operands,
               absl::Span<const Shape* const> results);
// Whether the element types are among those of the signature; true where it says none.
bool FitsTypes(const RuleAlternative& a, absl::Span<const Shape* const> operands,
               absl::Span<const Shape* const> results);

// The same of the operands alone.
bool FitsRanksOfOperands(const RuleAlternative& a, absl::Span<const Shape* const> operands);
bool FitsTypesOfOperands(const RuleAlternative& a, absl::Span<const Shape* const> operands);

// Whether some call fits both. Functions `applies` that differ are taken to exclude each other.
bool Overlap(const RuleAlternative& a, const RuleAlternative& b);
// Whether each call that fits `a` fits `b`; false where that is not certain.
bool IsWithin(const RuleAlternative& a, const RuleAlternative& b);

// Puts narrower signatures in front of wider ones, and keeps the order of the others. E105 where
// two overlap and neither is narrower: a call that fits both has no rule.
absl::Status OrderSignatures(absl::string_view target, absl::string_view source,
                             std::vector<RuleAlternative>* alternatives);

// The same for rules that need not be told apart: where two overlap, either will do.
void PutNarrowerFirst(std::vector<RuleAlternative>* alternatives);

// `"i j -> i j" need_replication={j} types "f32 -> f32" when {mode = "gelu"}`.
std::string DescribeSignature(const RuleAlternative& a);

}  // namespace shardcall::inline internal

#endif  // SHARDCALL_PARTITIONER_CUSTOM_CALL_RULE_CHOICE_H_
