// SPDX-License-Identifier: Apache-2.0
// Text of programs and files, such as names, on its way to a terminal or a shell. Programs come
// from anywhere, and a name may hold what a terminal takes for a command.
#ifndef SHARDCALL_SHARDING_BASE_TERMINAL_TEXT_H_
#define SHARDCALL_SHARDING_BASE_TERMINAL_TEXT_H_

#include <string>

#include "absl/strings/string_view.h"

namespace shardcall {
inline namespace internal {

// The text with what steers a terminal written as \xNN, byte by byte: control characters (C0 but
// for line feeds and tabs, DEL, and C1), and those that turn the direction of writing.
std::string WithoutControls(absl::string_view text);

// The word as a POSIX shell reads it: as it is where no character needs quotes, else in quotes.
std::string ShellWord(absl::string_view word);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_SHARDING_BASE_TERMINAL_TEXT_H_
