// SPDX-License-Identifier: Apache-2.0
// The .npy format: one array as bytes after a header, which is a Python dictionary.
#ifndef SHARDCALL_PARTITIONER_RUNTIME_IO_NPY_H_
#define SHARDCALL_PARTITIONER_RUNTIME_IO_NPY_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace shardcall::inline internal {

// An array in numpy's representation, in C order and host byte order.
struct NpyArray {
  char kind = 0;       // 'b', 'i', 'u', 'f', 'c', 'V', 'U', 'S'
  int item_bytes = 0;  // of one element
  std::vector<int64_t> dims;
  std::string data;

  std::string DtypeName() const;  // "float32", "int8", "bool", ..
};

// Versions 1 to 3, either order, either byte order. Errors E202.
absl::StatusOr<NpyArray> ParseNpy(absl::string_view bytes, absl::string_view name);

// Header and data, version 1.
std::string NpyHeader(char kind, int item_bytes, absl::Span<const int64_t> dims);

}  // namespace shardcall::inline internal

#endif  // SHARDCALL_PARTITIONER_RUNTIME_IO_NPY_H_
