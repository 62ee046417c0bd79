// SPDX-License-Identifier: Apache-2.0
// Whether text is UTF-8, and its characters.
#ifndef SHARDCALL_SHARDING_BASE_UTF8_H_
#define SHARDCALL_SHARDING_BASE_UTF8_H_

#include "absl/strings/string_view.h"

namespace shardcall {
inline namespace internal {

// The first byte of `text` that is not valid UTF-8; null if there is none.
const char* FirstNonUtf8(absl::string_view text);

// The first character of `text`, which is not empty: all of its bytes, or one byte that is not
// UTF-8.
absl::string_view FirstCharacter(absl::string_view text);

inline bool IsUtf8(absl::string_view text) { return FirstNonUtf8(text) == nullptr; }

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_SHARDING_BASE_UTF8_H_
