// SPDX-License-Identifier: Apache-2.0
// The .npy format: one array as bytes after a header, which is a Python dictionary.
#ifndef SHARDCALL_PARTITIONER_RUNTIME_IO_NPY_H_
#define SHARDCALL_PARTITIONER_RUNTIME_IO_NPY_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace shardcall {
inline namespace internal {

// An array in numpy's representation, in C order and host byte order.
struct NpyArray {
  char kind = 0;       // 'b', 'i', 'u', 'f', 'c', 'V', 'U', 'S'
  int item_bytes = 0;  // of one element
  std::vector<int64_t> dims;
  std::string data;

  std::string DtypeName() const;  // "float32", "int8", "bool", ..
};

// The beginning of an .npy file. It is read before the data, which may be as large as it says.
struct NpyHead {
  NpyArray array;      // without data
  int64_t data_bytes;  // that its shape needs
  bool swapped, fortran;
};

// The bytes before the data, by the first kNpyPrefix of them: magic string, version, length.
// Headers beyond 1 MiB are refused. Errors E202.
inline constexpr size_t kNpyPrefix = 12;
absl::StatusOr<int64_t> NpyHeadBytes(absl::string_view prefix, absl::string_view name);
// Versions 1 to 3, either order, either byte order. `bytes` begins with a whole header.
absl::StatusOr<NpyHead> ParseNpyHead(absl::string_view bytes, absl::string_view name);
// E202, unless the data has the bytes that the shape needs.
absl::Status CheckNpyData(const NpyHead& head, int64_t bytes, absl::string_view name);
// The array with its data, of head.data_bytes bytes, in C order and host byte order.
NpyArray WithData(NpyHead head, std::string data);
// The same at once.
absl::StatusOr<NpyArray> ParseNpy(absl::string_view bytes, absl::string_view name);

// Header and data, version 1.
std::string NpyHeader(char kind, int item_bytes, absl::Span<const int64_t> dims);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_RUNTIME_IO_NPY_H_
