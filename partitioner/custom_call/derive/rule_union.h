// SPDX-License-Identifier: Apache-2.0
// Derived rules of which a call does not show the one that it has: x -> y and (x, gain) -> y have
// VJPs of (dy, x), which look alike if the VJP does not take the gain. The rule of such a call
// allows what both allow.
#ifndef SHARDCALL_PARTITIONER_CUSTOM_CALL_DERIVE_RULE_UNION_H_
#define SHARDCALL_PARTITIONER_CUSTOM_CALL_DERIVE_RULE_UNION_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "shardcall/partitioner/custom_call/registry.h"

namespace shardcall {
inline namespace internal {

struct DerivedRule {
  RuleAlternative rule = {};
  size_t from = 0;  // the number of the rule that it follows from
  // Whether a call shows all that the call of that rule showed, so that the narrower rule is the
  // right one here too.
  bool shows_call = false;
};

// The rules of calls with any of the derived rules, the narrower ones first. Where two from
// different rules fit one call, factors that either says are whole are whole, and so are those that
// they put in different places; attributes on which they do not agree stay those of the whole call.
// E116 where that would concern dimensions of `...`. `target` is the one whose rules they follow
// from.
absl::StatusOr<std::vector<RuleAlternative>> RulesThatObeyAll(absl::string_view target,
                                                              std::vector<DerivedRule> derived);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_CUSTOM_CALL_DERIVE_RULE_UNION_H_
