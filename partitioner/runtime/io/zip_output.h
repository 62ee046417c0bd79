// SPDX-License-Identifier: Apache-2.0
// Lets libzip write an archive into a file that is open, instead of a file of its own beside it.
#ifndef SHARDCALL_PARTITIONER_RUNTIME_IO_ZIP_OUTPUT_H_
#define SHARDCALL_PARTITIONER_RUNTIME_IO_ZIP_OUTPUT_H_

#include <zip.h>

namespace shardcall {
inline namespace internal {

class ZipOutput {
 public:
  // `file` is an empty regular file, which stays open. This object outlives the archive.
  explicit ZipOutput(int file);
  ~ZipOutput() { zip_error_fini(&error_); }
  ZipOutput(const ZipOutput&) = delete;
  ZipOutput& operator=(const ZipOutput&) = delete;

  // A new archive that zip_close writes into the file; null on errors, which go into `error`.
  zip_t* Open(zip_error_t* error);

 private:
  static zip_int64_t Call(void* self, void* data, zip_uint64_t length, zip_source_cmd_t command);
  zip_int64_t Failed(int zip_code);  // with errno

  int file_;
  zip_error_t error_;
};

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_RUNTIME_IO_ZIP_OUTPUT_H_
