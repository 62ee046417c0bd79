// SPDX-License-Identifier: Apache-2.0
#ifndef SHARDCALL_PARTITIONER_BINDINGS_PJRT_DUMP_FOLDER_H_
#define SHARDCALL_PARTITIONER_BINDINGS_PJRT_DUMP_FOLDER_H_

#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace shardcall::pjrt {

// A folder of mode 0700, in memory where the system has such a place, that is deleted
// with all that stands in it. XLA writes its dumps into it.
class DumpFolder {
 public:
  static absl::StatusOr<DumpFolder> Create();  // E061
  ~DumpFolder();
  DumpFolder(DumpFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  DumpFolder& operator=(DumpFolder&&) = delete;

  const std::string& path() const { return path_; }
  // The content of the file whose name ends so; empty if there is none, the last by name
  // if there are several. E060.
  absl::StatusOr<std::string> ReadFile(absl::string_view end) const;

 private:
  explicit DumpFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

}  // namespace shardcall::pjrt

#endif  // SHARDCALL_PARTITIONER_BINDINGS_PJRT_DUMP_FOLDER_H_
