// SPDX-License-Identifier: Apache-2.0
// Attributes of a call that follow its shard. A kernel that states its grid, or a size, in its
// backend_config would otherwise be told those of the whole arrays on every device:
//
//   rule "m k, k n -> m n" with {{"grid_x", "m / 16"}}: a call {grid_x = 8 : i32} of 128 rows that
//   are sharded over 4 devices is {grid_x = 2 : i32} on each.
//
// Names are those of config_numbers.h ("n", "more.n", "grid[0]"), formulas those of
// size_expression.h over the sizes of the rule's factors.
#ifndef SHARDCALL_PARTITIONER_CUSTOM_CALL_ATTRIBUTE_FORMULAS_H_
#define SHARDCALL_PARTITIONER_CUSTOM_CALL_ATTRIBUTE_FORMULAS_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "shardcall/sharding/rule/rule.h"

namespace shardcall {
inline namespace internal {

// Of one rule: attributes' names and formulas.
using AttributeFormulas = std::vector<std::pair<std::string, std::string>>;

// E124: a formula that does not parse, a factor that is not among `factors`, an attribute that has
// two formulas. `target` is for messages.
absl::Status CheckAttributeFormulas(const AttributeFormulas& formulas, absl::string_view target,
                                    absl::Span<const std::string> factors);

// The backend_config of a call on a shard whose factors have these sizes, by factor of `rule`; the
// whole call has those of `rule`. E125: an attribute that the call lacks or that is no integer, a
// value that its formula does not give for the whole call, a result that is no integer or that the
// attribute's type cannot hold.
absl::StatusOr<std::string> ConfigOfShard(const AttributeFormulas& formulas,
                                          absl::string_view target,
                                          absl::string_view backend_config,
                                          const ShardingRule& rule,
                                          absl::Span<const int64_t> sizes);
// The same with `rule`'s own sizes, whatever the call states: for calls in other sizes.
absl::StatusOr<std::string> ConfigOfSizes(const AttributeFormulas& formulas,
                                          absl::string_view target,
                                          absl::string_view backend_config,
                                          const ShardingRule& rule,
                                          absl::Span<const int64_t> sizes);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_CUSTOM_CALL_ATTRIBUTE_FORMULAS_H_
