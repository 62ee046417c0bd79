// SPDX-License-Identifier: Apache-2.0
// Factors that a rule leaves open: operands have them, no result has, and the rule
// does not say whether results are combined over their shards (reduction) or the
// kernel must see them whole (need_replication). Sharded as they stand, every
// device would give the results of its own part for those of the whole. A blocked
// factor is none of them: its author says that any shard gives the whole result.
#ifndef SHARDCALL_PARTITIONER_CUSTOM_CALL_DERIVE_OPEN_FACTORS_H_
#define SHARDCALL_PARTITIONER_CUSTOM_CALL_DERIVE_OPEN_FACTORS_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "shardcall/partitioner/custom_call/registry.h"

namespace shardcall {

// Of a rule string, on registration: E112. A rule "k ->" may be that of a call
// without results, so it is the call's to judge.
absl::Status CheckOpenFactors(const RuleAlternative& rule, absl::string_view target,
                              absl::string_view source);
// The same of a call, with its rule.
absl::Status CheckOpenFactors(const ShardingRule& rule, absl::Span<const Shape* const> results,
                              absl::string_view target);

// Factors that results alone have, and that are not blocked, become whole: a kernel
// computes its part of them without knowing which part, as an iota would. `blocked` says
// that every part is the same op (a fill), and is sharded.
void KeepResultFactorsWhole(ShardingRule* rule);

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_CUSTOM_CALL_DERIVE_OPEN_FACTORS_H_
