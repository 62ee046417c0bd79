// SPDX-License-Identifier: Apache-2.0
#include "shardcall/sharding/rule/rule_sizes.h"

#include "absl/algorithm/container.h"

namespace shardcall {
inline namespace internal {

void AddSizesThatFollow(absl::Span<const absl::Span<const int>> dims, std::vector<bool>* known) {
  const auto open = [&](int f) { return !(*known)[f]; };
  for (bool found = true; found;) {
    found = false;
    for (const absl::Span<const int> dim : dims) {
      if (absl::c_count_if(dim, open) != 1) continue;
      (*known)[*absl::c_find_if(dim, open)] = true;
      found = true;
    }
  }
}

std::vector<bool> SizesFollow(const ShardingRule& rule) {
  std::vector<absl::Span<const int>> dims;
  for (int t = 0; t < rule.num_tensors(); ++t) {
    for (const FactorList& dim : rule.tensor(t).dims) dims.emplace_back(dim);
  }
  std::vector<bool> known(rule.factors.size(), false);
  AddSizesThatFollow(dims, &known);
  return known;
}

}  // namespace internal
}  // namespace shardcall
