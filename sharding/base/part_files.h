// SPDX-License-Identifier: Apache-2.0
// The unfinished files of a process, which a signal that ends it removes.
#ifndef SHARDCALL_SHARDING_BASE_PART_FILES_H_
#define SHARDCALL_SHARDING_BASE_PART_FILES_H_

#include <string>

namespace shardcall {
inline namespace internal {

// A file that is removed when this is destroyed, or by RemovePartFiles, unless it was renamed
// before. It is known from the constructor on, so before the file is made.
class PartFile {
 public:
  explicit PartFile(std::string path);
  ~PartFile();
  PartFile(const PartFile&) = delete;
  PartFile& operator=(const PartFile&) = delete;

  const std::string& path() const { return path_; }
  // Gives the file another name, in the same file system; false if that fails.
  bool RenameTo(const std::string& path);

 private:
  std::string path_;
  int slot_;  // in the table of those that signals remove; -1: the table was full
};

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_SHARDING_BASE_PART_FILES_H_
