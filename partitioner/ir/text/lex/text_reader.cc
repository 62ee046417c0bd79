// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/text/lex/text_reader.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "shardcall/sharding/base/near_names.h"

namespace shardcall {
inline namespace internal {
namespace hlo_text {

std::string DidYouMean(absl::string_view word, absl::Span<const absl::string_view> candidates) {
  const std::vector<std::string> near = NearNames(word, candidates, 1);
  return near.empty() ? std::string() : absl::StrCat("did you mean '", near[0], "'?");
}

}  // namespace hlo_text
}  // namespace internal
}  // namespace shardcall
