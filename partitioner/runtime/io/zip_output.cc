// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/runtime/io/zip_output.h"

#include <unistd.h>

#include <cerrno>

#include "absl/strings/string_view.h"
#include "shardcall/sharding/base/whole_file.h"

namespace shardcall {
inline namespace internal {

ZipOutput::ZipOutput(int file) : file_(file) { zip_error_init(&error_); }

zip_int64_t ZipOutput::Failed(int zip_code) {
  zip_error_set(&error_, zip_code, errno);
  return -1;
}

zip_int64_t ZipOutput::Call(void* self, void* data, zip_uint64_t length, zip_source_cmd_t command) {
  ZipOutput& out = *static_cast<ZipOutput*>(self);
  switch (command) {
    case ZIP_SOURCE_SUPPORTS: return ZIP_SOURCE_SUPPORTS_WRITABLE;
    // The archive is new, so nothing is read.
    case ZIP_SOURCE_OPEN:
    case ZIP_SOURCE_READ:
    case ZIP_SOURCE_CLOSE:
    case ZIP_SOURCE_SEEK:
    case ZIP_SOURCE_TELL:
    case ZIP_SOURCE_FREE: return 0;
    case ZIP_SOURCE_STAT: zip_stat_init(static_cast<zip_stat_t*>(data)); return sizeof(zip_stat_t);
    case ZIP_SOURCE_ERROR: return zip_error_to_data(&out.error_, data, length);
    case ZIP_SOURCE_WRITE: {
      const absl::string_view bytes(static_cast<const char*>(data), length);
      return WriteAll(out.file_, bytes) ? static_cast<zip_int64_t>(length)
                                        : out.Failed(ZIP_ER_WRITE);
    }
    case ZIP_SOURCE_SEEK_WRITE: {
      const auto* const to = ZIP_SOURCE_GET_ARGS(zip_source_args_seek_t, data, length, &out.error_);
      if (to == nullptr) return -1;
      return lseek(out.file_, to->offset, to->whence) < 0 ? out.Failed(ZIP_ER_SEEK) : 0;
    }
    case ZIP_SOURCE_TELL_WRITE: {
      const off_t at = lseek(out.file_, 0, SEEK_CUR);
      return at < 0 ? out.Failed(ZIP_ER_TELL) : at;
    }
    // The owner of the file keeps or removes it.
    case ZIP_SOURCE_BEGIN_WRITE:
    case ZIP_SOURCE_COMMIT_WRITE:
    case ZIP_SOURCE_ROLLBACK_WRITE:
    case ZIP_SOURCE_REMOVE: return 0;
    default: errno = 0; return out.Failed(ZIP_ER_OPNOTSUPP);
  }
}

zip_t* ZipOutput::Open(zip_error_t* error) {
  zip_source_t* const source = zip_source_function_create(Call, this, error);
  if (source == nullptr) return nullptr;
  zip_t* const zip = zip_open_from_source(source, ZIP_CREATE | ZIP_TRUNCATE, error);
  if (zip == nullptr) zip_source_free(source);
  return zip;
}

}  // namespace internal
}  // namespace shardcall
