// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/text/text_reader.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "shardcall/sharding/base/near_names.h"

namespace shardcall::inline internal::hlo_text {
namespace {

absl::string_view Nearest(absl::string_view word, absl::Span<const absl::string_view> candidates) {
  absl::string_view best;
  int best_distance = std::max(1, static_cast<int>(word.size()) / 3) + 1;
  if (word.size() > 80) return best;
  for (absl::string_view c : candidates) {
    if (c.size() > word.size() + best_distance || word.size() > c.size() + best_distance) continue;
    if (const int distance = EditDistance(word, c); distance < best_distance) {
      best_distance = distance;
      best = c;
    }
  }
  return best;
}

}  // namespace

std::string DidYouMean(absl::string_view word, absl::Span<const absl::string_view> candidates) {
  const absl::string_view nearest = Nearest(word, candidates);
  return nearest.empty() ? std::string() : absl::StrCat("did you mean '", nearest, "'?");
}

}  // namespace shardcall::inline internal::hlo_text
