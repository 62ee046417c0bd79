// SPDX-License-Identifier: Apache-2.0
// Where something stands in a text, as messages about it show it.
#ifndef SHARDCALL_SHARDING_BASE_TEXT_PLACE_H_
#define SHARDCALL_SHARDING_BASE_TEXT_PLACE_H_

#include <string>

#include "absl/strings/string_view.h"

namespace shardcall {
inline namespace internal {

// "file:line:column" of `at`, a character of `text` or its end.
std::string PlaceInText(absl::string_view text, const char* at, absl::string_view file);

// The line of `at`, with a caret below it.
std::string LineWithCaret(absl::string_view text, const char* at);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_SHARDING_BASE_TEXT_PLACE_H_
