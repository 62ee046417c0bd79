// SPDX-License-Identifier: Apache-2.0
#include "shardcall/sharding/base/whole_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <fstream>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall::inline internal {

absl::Status FileError(const char* code, const std::string& path, const char* what) {
  Diagnostic d;
  d.code = code;
  d.message = absl::StrCat("\"", path, "\" cannot be ", what);
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

absl::Status WriteWholeFile(const std::string& path, absl::string_view bytes) {
  struct stat info;
  if (stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode)) {
    std::ofstream out(path, std::ios::binary);
    out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    out.close();
    return out ? absl::OkStatus() : FileError("E061", path, "written");
  }
  static std::atomic<int> written{0};  // threads of a process may write the same file
  const std::string temporary = absl::StrCat(path, ".", getpid(), ".", written++, ".tmp");
  {
    std::ofstream out(temporary, std::ios::binary);
    out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    out.close();
    if (!out) {
      std::remove(temporary.c_str());
      return FileError("E061", path, "written");
    }
  }
  if (std::rename(temporary.c_str(), path.c_str()) != 0) {
    std::remove(temporary.c_str());
    return FileError("E061", path, "written");
  }
  return absl::OkStatus();
}

}  // namespace shardcall::inline internal
