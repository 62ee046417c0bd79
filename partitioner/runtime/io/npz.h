// SPDX-License-Identifier: Apache-2.0
// Arguments and results as .npz files: `arg0, arg1, ..` and `out0, out1, ..` by flat leaf. Types
// that numpy lacks are stored by their bits (bf16 as uint16, the f8 types as uint8, 4-bit and
// smaller ones one element per byte), with the HLO names of all arrays in a string array `dtypes`.
// On reading, float32 is also accepted for a narrow float if every value is exact, and numpy's
// void types of the right width for a type that numpy lacks.
//
// An array is read only where a leaf wants it and its header has the type and shape of the leaf. So
// memory is bounded by the leaves, whatever the entries of the archive inflate to.
//
// Errors are E201 to E207 and E064 of sharding/DIAGNOSTICS.md.
#ifndef SHARDCALL_PARTITIONER_RUNTIME_IO_NPZ_H_
#define SHARDCALL_PARTITIONER_RUNTIME_IO_NPZ_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "shardcall/partitioner/runtime/io/random_inputs.h"  // IWYU pragma: export
#include "shardcall/partitioner/runtime/program.h"
#include "shardcall/partitioner/runtime/tensor.h"
#include "shardcall/sharding/base/max_input.h"
#include "shardcall/sharding/base/public.h"

namespace shardcall SHARDCALL_PUBLIC {

// The arrays `<prefix>0`, .. for the given leaves; tokens have none. E064 if the file is more than
// `max_input` bytes larger than the leaves.
absl::StatusOr<std::vector<Tensor>> ReadNpz(const std::string& path, absl::string_view prefix,
                                            absl::Span<const LeafShape> leaves,
                                            int64_t max_input = kMaxInput);

// Writes to a temporary file and renames it, so that the file is complete or absent. The bytes
// depend only on the tensors.
absl::Status WriteNpz(const std::string& path, absl::string_view prefix,
                      absl::Span<const Tensor> tensors);

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_RUNTIME_IO_NPZ_H_
