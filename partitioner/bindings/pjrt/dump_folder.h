// SPDX-License-Identifier: Apache-2.0
#ifndef SHARDCALL_PARTITIONER_BINDINGS_PJRT_DUMP_FOLDER_H_
#define SHARDCALL_PARTITIONER_BINDINGS_PJRT_DUMP_FOLDER_H_

#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace shardcall {
inline namespace internal {
namespace pjrt {

// A folder of mode 0700, in memory if the system has such a place, that is deleted with its
// contents. XLA writes its dumps into it. A folder of a killed process is deleted by the first
// Create of a later process.
class DumpFolder {
 public:
  static absl::StatusOr<DumpFolder> Create();  // E061
  ~DumpFolder();
  DumpFolder(DumpFolder&& other) noexcept
      : path_(std::exchange(other.path_, {})), lock_(std::exchange(other.lock_, -1)) {}
  DumpFolder& operator=(DumpFolder&&) = delete;

  // Deletes those folders of this user in `parent` that no process has locked and that were not
  // changed for ten minutes.
  static void DeleteAbandoned(const std::string& parent);

  const std::string& path() const { return path_; }
  // The content of the file whose name ends with `end`; empty if there is none, the last by name
  // if there are several. E060.
  absl::StatusOr<std::string> ReadFile(absl::string_view end) const;

 private:
  explicit DumpFolder(std::string path);
  std::string path_;
  int lock_;  // a descriptor of the folder, locked while the process lives
};

}  // namespace pjrt
}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_BINDINGS_PJRT_DUMP_FOLDER_H_
