// SPDX-License-Identifier: Apache-2.0
// The values of a rule string, operands and then results, as names of factors by dimension; and the
// rule string of such values.
#ifndef SHARDCALL_PARTITIONER_CUSTOM_CALL_RULE_VALUES_H_
#define SHARDCALL_PARTITIONER_CUSTOM_CALL_RULE_VALUES_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "shardcall/partitioner/custom_call/registry.h"

namespace shardcall {
inline namespace internal {

// Fills `values` and `num_operands` from the rule string, which ParseRule has accepted.
void ReadValues(RuleAlternative* a);

// "... m k, (g r) -> ... m".
std::string RuleString(absl::Span<const RuleAlternative::Value> values, int num_operands);

// The names of all factors, each once, in the order in which they occur.
std::vector<std::string> FactorsOf(absl::Span<const RuleAlternative::Value> values);

// Whether the factor needs replication, or is permuted, so that a shard has all of it.
bool IsWhole(const RuleText& text, const std::string& factor);

// Whether padding values are equal, NaN to NaN too.
bool SamePads(absl::Span<const std::pair<std::string, double>> a,
              absl::Span<const std::pair<std::string, double>> b);

// A name based on `wish` that is not among `taken`.
std::string FreshFactor(absl::Span<const std::string> taken, const std::string& wish);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_CUSTOM_CALL_RULE_VALUES_H_
