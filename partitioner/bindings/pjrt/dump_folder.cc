// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/bindings/pjrt/dump_folder.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <system_error>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "shardcall/sharding/base/status.h"
#include "shardcall/sharding/base/whole_file.h"

namespace shardcall {
inline namespace internal {
namespace pjrt {
namespace {

namespace fs = std::filesystem;

constexpr absl::string_view kPrefix = "shardcall.hlo.";
constexpr absl::string_view kUnique = "XXXXXX";
// Longer than the time between the creation of a folder and its lock, and than any conversion,
// since some file systems have no locks.
constexpr time_t kAbandonedSeconds = 600;

// A descriptor of the folder itself, not of the target of a symlink; -1 if there is none.
int OpenFolder(const std::string& path) {
  return open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

// The lock of a killed process is released. A process id would not do: ids are reused, and differ
// between containers.
bool Lock(int folder) { return folder >= 0 && flock(folder, LOCK_EX | LOCK_NB) == 0; }

bool IsOldAndOurs(int folder) {
  struct stat info;
  return fstat(folder, &info) == 0 && info.st_uid == geteuid() && (info.st_mode & 0777) == 0700 &&
         time(nullptr) - info.st_mtime > kAbandonedSeconds;
}

// Places for the folder, best first.
std::vector<std::string> Parents() {
  std::error_code error;
  const fs::path temporary = fs::temp_directory_path(error);  // TMPDIR
  return {"/dev/shm", error ? "/tmp" : temporary.string()};
}

}  // namespace

void DumpFolder::DeleteAbandoned(const std::string& parent) {
  std::error_code error;
  for (fs::directory_iterator it(parent, error), last; !error && it != last; it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (!absl::StartsWith(name, kPrefix) || name.size() != kPrefix.size() + kUnique.size()) {
      continue;
    }
    const int folder = OpenFolder(it->path().string());
    std::error_code ignored;
    if (folder >= 0 && IsOldAndOurs(folder) && Lock(folder)) fs::remove_all(it->path(), ignored);
    if (folder >= 0) close(folder);
  }
}

DumpFolder::DumpFolder(std::string path) : path_(std::move(path)), lock_(OpenFolder(path_)) {
  Lock(lock_);
}

absl::StatusOr<DumpFolder> DumpFolder::Create() {
  // Once; nobody needs to wait for it.
  static std::atomic<bool> looked{false};
  if (!looked.exchange(true)) {
    for (const std::string& parent : Parents()) DeleteAbandoned(parent);
  }
  std::string why;
  for (const std::string& parent : Parents()) {
    std::string path = absl::StrCat(parent, "/", kPrefix, kUnique);
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
  if (lock_ >= 0) close(lock_);
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

}  // namespace pjrt
}  // namespace internal
}  // namespace shardcall
