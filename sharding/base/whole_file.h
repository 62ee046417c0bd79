// SPDX-License-Identifier: Apache-2.0
#ifndef SHARDCALL_SHARDING_BASE_WHOLE_FILE_H_
#define SHARDCALL_SHARDING_BASE_WHOLE_FILE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace shardcall {

// E060 or E061: a file cannot be `what`, "read" or "written".
absl::Status FileError(const char* code, const std::string& path, const char* what);

// E060, for a folder too.
absl::StatusOr<std::string> ReadWholeFile(const std::string& path);

// The file appears whole or not at all; a device or a pipe is written to, and never
// replaced by a file. E061.
absl::Status WriteWholeFile(const std::string& path, absl::string_view bytes);

}  // namespace shardcall

#endif  // SHARDCALL_SHARDING_BASE_WHOLE_FILE_H_
