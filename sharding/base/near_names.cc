// SPDX-License-Identifier: Apache-2.0
#include "shardcall/sharding/base/near_names.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/match.h"

namespace shardcall {
inline namespace internal {

int EditDistance(absl::string_view a, absl::string_view b) {
  std::vector<int> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (size_t i = 0; i < a.size(); ++i) {
    int diagonal = row[0];
    row[0] = static_cast<int>(i) + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      const int substituted = diagonal + (a[i] != b[j]);
      diagonal = row[j + 1];
      row[j + 1] = std::min({substituted, row[j] + 1, diagonal + 1});
    }
  }
  return row.back();
}

std::vector<std::string> NearNames(absl::string_view name,
                                   absl::Span<const absl::string_view> names, int limit) {
  // Names of custom calls may have kilobytes; no name is near to those.
  constexpr size_t kLongest = 200;
  std::vector<std::pair<int, absl::string_view>> found;
  if (name.empty() || name.size() > kLongest) return {};
  for (absl::string_view candidate : names) {
    if (candidate.empty() || candidate.size() > kLongest) continue;
    const int distance = EditDistance(name, candidate);
    const int allowed =
        std::max<int>(1, static_cast<int>(std::max(name.size(), candidate.size())) / 3);
    const bool contained =
        std::min(name.size(), candidate.size()) >= 3 &&
        (absl::StrContains(name, candidate) || absl::StrContains(candidate, name));
    if (distance <= allowed || contained) found.emplace_back(distance, candidate);
  }
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  if (static_cast<int>(found.size()) > limit) found.resize(limit);
  std::vector<std::string> result;
  for (const auto& f : found) result.emplace_back(f.second);
  return result;
}

}  // namespace internal
}  // namespace shardcall
