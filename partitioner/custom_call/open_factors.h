// SPDX-License-Identifier: Apache-2.0
// Open factors: pass-through factors that operands have and no result has, of which the rule does
// not say whether results are combined over their shards (reduction) or the kernel needs them
// whole (need_replication). If such a factor were sharded, every device would return the result of
// its own part as the whole result. A blocked factor is not open: its author declares that any
// shard gives the whole result.
#ifndef SHARDCALL_PARTITIONER_CUSTOM_CALL_OPEN_FACTORS_H_
#define SHARDCALL_PARTITIONER_CUSTOM_CALL_OPEN_FACTORS_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "shardcall/partitioner/custom_call/registry.h"

namespace shardcall {
inline namespace internal {

// Checks a rule string on registration: E112. A rule without results such as "k ->" is not checked
// here, since it may be for calls without results; the check of the call decides.
absl::Status CheckOpenFactors(const RuleAlternative& rule, absl::string_view target,
                              absl::string_view source);
// Whether the rule string has open factors.
bool LeavesFactorsOpen(const RuleAlternative& rule);
// The same check for a call, with its instantiated rule.
absl::Status CheckOpenFactors(const ShardingRule& rule, absl::Span<const Shape* const> results,
                              absl::string_view target);

// Makes the factors that only results have need replication, unless they are blocked: a kernel
// cannot know which part of such a dimension it computes (an iota would need that). `blocked`
// declares that every part is the same op (a fill), so it may be sharded.
void KeepResultFactorsWhole(ShardingRule* rule);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_CUSTOM_CALL_OPEN_FACTORS_H_
