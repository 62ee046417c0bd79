// SPDX-License-Identifier: Apache-2.0
#include "shardcall/sharding/base/whole_file.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "shardcall/sharding/base/human_bytes.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace {

absl::Status TooLarge(const std::string& name, std::string found, int64_t max_input) {
  Diagnostic d;
  d.code = "E064";
  d.message = absl::StrCat("\"", name, "\" is larger than what may be read");
  d.expected = absl::StrCat("at most ", HumanBytes(static_cast<double>(max_input)));
  d.found = std::move(found);
  d.fix = "Give the file that is meant, or raise --max-input (max_input of the interfaces)";
  return ToStatus(d, absl::StatusCode::kResourceExhausted);
}

}  // namespace

absl::Status FileError(const char* code, const std::string& path, const char* what, int error) {
  Diagnostic d;
  d.code = code;
  d.message = absl::StrCat("\"", path, "\" cannot be ", what);
  if (error != 0) d.message += absl::StrCat(" (", std::strerror(error), ")");
  d.fix = absl::StrCat("check the path and its permissions",
                       absl::string_view(code) == "E061" ? ", and the room on its device" : "");
  return ToStatus(d, absl::StatusCode::kNotFound);
}

absl::Status CheckInputSize(const std::string& name, int64_t bytes, int64_t max_input) {
  if (bytes <= max_input) return absl::OkStatus();
  return TooLarge(name, HumanBytes(static_cast<double>(bytes)), max_input);
}

absl::StatusOr<std::string> ReadWholeStream(std::FILE* stream, const std::string& name,
                                            int64_t max_input) {
  constexpr size_t kChunk = 1 << 20;
  std::string bytes;
  for (;;) {
    const size_t had = bytes.size();
    // One byte more than the limit tells that there is too much.
    const size_t room = static_cast<size_t>(max_input) - had + 1;
    bytes.resize(had + std::min(room, std::max(kChunk, had)));
    const size_t got = std::fread(&bytes[had], 1, bytes.size() - had, stream);
    bytes.resize(had + got);
    if (static_cast<int64_t>(bytes.size()) > max_input) {
      return TooLarge(name, "more", max_input);
    }
    if (std::ferror(stream) != 0) return FileError("E060", name, "read");
    if (std::feof(stream) != 0) return bytes;
  }
}

absl::StatusOr<std::string> ReadWholeFile(const std::string& path, int64_t max_input) {
  struct stat info;  // a directory can be opened, but not read
  if (stat(path.c_str(), &info) != 0 || S_ISDIR(info.st_mode)) {
    return FileError("E060", path, "read");
  }
  if (S_ISREG(info.st_mode)) {
    SHARDCALL_RETURN_IF_ERROR(CheckInputSize(path, info.st_size, max_input));
  }
  std::FILE* const file = std::fopen(path.c_str(), "rb");
  if (file == nullptr) return FileError("E060", path, "read");
  absl::StatusOr<std::string> bytes = ReadWholeStream(file, path, max_input);
  std::fclose(file);
  return bytes;
}

}  // namespace internal
}  // namespace shardcall
