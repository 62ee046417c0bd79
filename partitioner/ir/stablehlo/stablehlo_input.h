// SPDX-License-Identifier: Apache-2.0
// Recognises StableHLO where HLO is expected. Callers that can convert it do so; others report it.
#ifndef SHARDCALL_PARTITIONER_IR_STABLEHLO_STABLEHLO_INPUT_H_
#define SHARDCALL_PARTITIONER_IR_STABLEHLO_STABLEHLO_INPUT_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace shardcall {
inline namespace internal {

bool IsMlirBytecode(absl::string_view bytes);
// True for an MLIR module, as text or bytecode.
bool LooksLikeStablehlo(absl::string_view bytes);

// The number of devices that the text declares (mhlo.num_partitions); 0 if it has none, and for
// bytecode.
int64_t StablehloPartitions(absl::string_view bytes);

// The error E035, which says that the file is StableHLO.
absl::Status StablehloIsNotHlo(absl::string_view file_name);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_STABLEHLO_STABLEHLO_INPUT_H_
