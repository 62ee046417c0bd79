// SPDX-License-Identifier: Apache-2.0
#ifndef SHARDCALL_SHARDING_BASE_WHOLE_FILE_H_
#define SHARDCALL_SHARDING_BASE_WHOLE_FILE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace shardcall::inline internal {

// The error `code`, E060 or E061, that says that a file cannot be `what`: "read" or "written".
absl::Status FileError(const char* code, const std::string& path, const char* what);

// E060 if the file cannot be read, which includes a directory.
absl::StatusOr<std::string> ReadWholeFile(const std::string& path);

// Writes a regular file whole or not at all: under a temporary name that is then renamed. A device
// or a pipe is written directly and never replaced. E061 if that fails.
absl::Status WriteWholeFile(const std::string& path, absl::string_view bytes);

}  // namespace shardcall::inline internal

#endif  // SHARDCALL_SHARDING_BASE_WHOLE_FILE_H_
