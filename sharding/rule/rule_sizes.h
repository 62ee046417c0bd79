// SPDX-License-Identifier: Apache-2.0
// Which sizes of factors a rule has to state, and which follow from the shapes of each call.
#ifndef SHARDCALL_SHARDING_RULE_RULE_SIZES_H_
#define SHARDCALL_SHARDING_RULE_RULE_SIZES_H_

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "shardcall/sharding/rule/rule.h"

namespace shardcall {
inline namespace internal {

// Adds to the `known` factors those that are the only other one of some dimension, until there are
// no more: the size of the dimension gives theirs. InstantiateRule finds the sizes so.
void AddSizesThatFollow(absl::Span<const absl::Span<const int>> dims, std::vector<bool>* known);

// By factor: whether its size follows from the shapes of each call. In "b (k g), b k -> b (k g)"
// all do: the size of g is that of the compound dimension divided by that of k.
std::vector<bool> SizesFollow(const ShardingRule& rule);

// As ShardingRule::ToString, but with the sizes alone that do not follow: what a user writes.
std::string RuleAsWritten(const ShardingRule& rule);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_SHARDING_RULE_RULE_SIZES_H_
