// SPDX-License-Identifier: Apache-2.0
// Suggestions for a misspelt name: the known names within a small edit distance of it, those that
// contain it, and those that it contains.
#ifndef SHARDCALL_SHARDING_BASE_NEAR_NAMES_H_
#define SHARDCALL_SHARDING_BASE_NEAR_NAMES_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace shardcall {
inline namespace internal {

// Insertions, deletions and substitutions of one byte that lead from a to b.
int EditDistance(absl::string_view a, absl::string_view b);

// At most `limit` of `names`, nearest first, then by name.
std::vector<std::string> NearNames(absl::string_view name,
                                   absl::Span<const absl::string_view> names, int limit = 3);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_SHARDING_BASE_NEAR_NAMES_H_
