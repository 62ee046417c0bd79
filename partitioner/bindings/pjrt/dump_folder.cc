// SPDX-License-Identifier: Apache-2.0
#include "partitioner/bindings/pjrt/dump_folder.h"

#include <stdlib.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "partitioner/api/whole_file.h"
#include "sharding/status.h"

namespace shardcall::pjrt {
namespace {

namespace fs = std::filesystem;

std::string TemporaryFolder() {
  std::error_code error;
  const fs::path path = fs::temp_directory_path(error);  // TMPDIR
  return error ? "/tmp" : path.string();
}

}  // namespace

absl::StatusOr<DumpFolder> DumpFolder::Create() {
  std::string why;
  for (const std::string& parent : {std::string("/dev/shm"), TemporaryFolder()}) {
    std::string path = absl::StrCat(parent, "/shardcall.XXXXXX");
    if (mkdtemp(path.data()) != nullptr) return DumpFolder(std::move(path));
    why = absl::StrCat(parent, ": ", std::strerror(errno));
  }
  return ToStatus({.code = "E061",
                   .message = "no folder can be made for a program on its way to HLO",
                   .found = why,
                   .fix = "Name a folder that can be written to in TMPDIR"});
}

DumpFolder::~DumpFolder() {
  std::error_code ignored;
  if (!path_.empty()) fs::remove_all(path_, ignored);
}

absl::StatusOr<std::string> DumpFolder::ReadFile(absl::string_view end) const {
  std::string name;
  std::error_code error;
  for (fs::directory_iterator it(path_, error), last; !error && it != last; it.increment(error)) {
    const std::string found = it->path().string();
    if (absl::EndsWith(found, end) && found > name) name = found;
  }
  if (error) return FileError("E060", path_, "read");
  return name.empty() ? std::string() : ReadWholeFile(name);
}

}  // namespace shardcall::pjrt
