// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "shardcall/sharding/base/part_files.h"
#include "shardcall/sharding/base/whole_file.h"

namespace shardcall {
inline namespace internal {
namespace {

namespace fs = std::filesystem;

class Descriptor {
 public:
  explicit Descriptor(int file) : file_(file) {}
  ~Descriptor() {
    if (file_ >= 0) close(file_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return file_; }
  // Some file systems tell only then that they have no room.
  bool Close() {
    const int file = file_;
    file_ = -1;
    return close(file) == 0;
  }

 private:
  int file_;
};

struct Place {
  std::string path;       // no symbolic link
  bool in_place = false;  // a device, a pipe, or an open file: not to be replaced
  bool there = false;
  struct stat info = {};  // if it is there
};

// The place that `path` leads to, through links. The errno of links in a circle and of a directory,
// else 0.
int FindPlace(const std::string& path, Place* place) {
  constexpr int kMostLinks = 40;  // as Linux follows
  fs::path at = path;
  std::error_code error;
  for (int k = 0; fs::is_symlink(fs::symlink_status(at, error)); ++k) {
    const fs::path next = fs::read_symlink(at, error);
    if (error) return error.value();
    if (k == kMostLinks) return ELOOP;
    // A link there stands for an open file, which may have no name.
    if (absl::StartsWith(at.string(), "/proc/")) {
      place->in_place = true;
      break;
    }
    at = next.is_absolute() ? next : at.parent_path() / next;
  }
  place->path = at.string();
  place->there = stat(place->path.c_str(), &place->info) == 0;
  if (place->there && S_ISDIR(place->info.st_mode)) return EISDIR;
  if (place->there && !S_ISREG(place->info.st_mode)) place->in_place = true;
  return 0;
}

// A name beside `path` that no other thread or process takes, at most as long as names may be.
std::string PartName(const std::string& path) {
  constexpr size_t kLongest = 200;  // characters of the name; file systems allow 255
  static std::atomic<int> written{0};
  const fs::path whole(path);
  const std::string name = whole.filename().string().substr(0, kLongest);
  const std::string part = absl::StrCat(name, ".", getpid(), ".", written++, ".part");
  return (whole.parent_path() / part).string();
}

// What went wrong with a file: the error of who wrote it, or a value of errno; or nothing.
struct Outcome {
  int error = 0;
  absl::Status status = absl::OkStatus();
};

Outcome CopyTo(const Place& place, int file) {
  const Descriptor to(open(place.path.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC));
  if (to.get() < 0 || lseek(file, 0, SEEK_SET) != 0) return {errno};
  std::vector<char> bytes(size_t{1} << 20);
  for (;;) {
    const ssize_t n = read(file, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n == 0) return {};
    if (n < 0 || !WriteAll(to.get(), absl::string_view(bytes.data(), static_cast<size_t>(n)))) {
      return {errno};
    }
  }
}

Outcome WriteInPlace(const Place& place, absl::FunctionRef<absl::Status(int file)> write) {
  struct Close {
    void operator()(std::FILE* f) const { std::fclose(f); }
  };
  const std::unique_ptr<std::FILE, Close> unnamed(std::tmpfile());
  if (unnamed == nullptr) return {errno};
  const absl::Status status = write(fileno(unnamed.get()));
  if (!status.ok()) return {0, status};
  return CopyTo(place, fileno(unnamed.get()));
}

// Gives a new file the owner, the group and the mode of the old one. Only a privileged user may
// give files to others; another one may still give them to a group of its own.
bool TakeAccess(const struct stat& old, int file) {
  if (fchown(file, old.st_uid, old.st_gid) != 0) {
    (void)!fchown(file, static_cast<uid_t>(-1), old.st_gid);
  }
  return fchmod(file, old.st_mode & 07777) == 0;  // after the owner, whose change clears set-id
}

Outcome Replace(const std::string& path, absl::FunctionRef<absl::Status(int file)> write) {
  Place place;
  if (const int error = FindPlace(path, &place)) return {error};
  if (place.in_place) return WriteInPlace(place, write);
  if (place.there && access(place.path.c_str(), W_OK) != 0) return {errno};
  constexpr mode_t kNewFile = 0666;  // less the umask
  PartFile part(PartName(place.path));
  Descriptor file(open(part.path().c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, kNewFile));
  if (file.get() < 0) return {errno};
  if (place.there && !TakeAccess(place.info, file.get())) return {errno};
  const absl::Status status = write(file.get());
  if (!status.ok()) return {0, status};
  if (!file.Close() || !part.RenameTo(place.path)) return {errno};
  return {};
}

}  // namespace

bool WriteAll(int file, absl::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(file, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

absl::Status ReplaceFile(const std::string& path, absl::FunctionRef<absl::Status(int file)> write) {
  const Outcome outcome = Replace(path, write);
  if (outcome.error == 0) return outcome.status;
  const absl::Status failed = FileError("E061", path, "written", outcome.error);
  errno = outcome.error;
  return failed;
}

absl::Status WriteWholeFile(const std::string& path, absl::string_view bytes) {
  Place place;
  if (FindPlace(path, &place) == 0 && place.in_place) {  // without a copy on disk
    const Descriptor to(open(place.path.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC));
    if (to.get() >= 0 && WriteAll(to.get(), bytes)) return absl::OkStatus();
    return FileError("E061", path, "written", errno);
  }
  return ReplaceFile(path, [&](int file) {
    return WriteAll(file, bytes) ? absl::OkStatus() : FileError("E061", path, "written", errno);
  });
}

}  // namespace internal
}  // namespace shardcall
