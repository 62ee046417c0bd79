// SPDX-License-Identifier: Apache-2.0
#include "shardcall/sharding/base/whole_file.h"

#include <sys/stat.h>

#include <cstring>
#include <fstream>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall::inline internal {

absl::Status FileError(const char* code, const std::string& path, const char* what, int error) {
  Diagnostic d;
  d.code = code;
  d.message = absl::StrCat("\"", path, "\" cannot be ", what);
  if (error != 0) d.message += absl::StrCat(" (", std::strerror(error), ")");
  d.fix = absl::StrCat("check the path and its permissions",
                       absl::string_view(code) == "E061" ? ", and the room on its device" : "");
  return ToStatus(d, absl::StatusCode::kNotFound);
}

absl::StatusOr<std::string> ReadWholeFile(const std::string& path) {
  struct stat info;  // std::ifstream opens a directory and throws when it is read
  if (stat(path.c_str(), &info) != 0 || S_ISDIR(info.st_mode)) {
    return FileError("E060", path, "read");
  }
  std::ifstream in(path, std::ios::binary);
  if (!in) return FileError("E060", path, "read");
  std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  if (in.bad()) return FileError("E060", path, "read");
  return text;
}

}  // namespace shardcall::inline internal
