// SPDX-License-Identifier: Apache-2.0
#include "shardcall/sharding/base/text_place.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace shardcall {
inline namespace internal {

std::string PlaceInText(absl::string_view text, const char* at, absl::string_view file) {
  const char* const begin = text.data();
  const auto line = 1 + std::count(begin, at, '\n');
  const char* start = at;
  while (start > begin && start[-1] != '\n') --start;
  return absl::StrCat(file, ":", line, ":", at - start + 1);
}

std::string LineWithCaret(absl::string_view text, const char* at) {
  const char* const begin = text.data();
  const char* const end = begin + text.size();
  constexpr int kWidth = 60;  // characters kept on either side of the caret
  const char* start = at;
  while (start > begin && start[-1] != '\n' && at - start < kWidth) --start;
  const char* stop = at;
  while (stop < end && *stop != '\n' && stop - at < kWidth) ++stop;
  const bool cut = start > begin && start[-1] != '\n';
  std::string line = absl::StrCat(cut ? "..." : "", absl::string_view(start, stop - start),
                                  stop < end && *stop != '\n' ? "..." : "");
  // One column per byte: unprintable bytes become question marks.
  for (char& c : line) {
    if (c == '\t') c = ' ';
    if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) > 0x7e) c = '?';
  }
  return absl::StrCat(line, "\n", std::string((cut ? 3 : 0) + (at - start), ' '), "^");
}

}  // namespace internal
}  // namespace shardcall
