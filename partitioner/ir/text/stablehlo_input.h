// SPDX-License-Identifier: Apache-2.0
// StableHLO where HLO is expected: recognised, so that whoever can convert it does, and
// anybody else says what it is.
#ifndef SHARDCALL_PARTITIONER_IR_TEXT_STABLEHLO_INPUT_H_
#define SHARDCALL_PARTITIONER_IR_TEXT_STABLEHLO_INPUT_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace shardcall::inline internal {

// True for an MLIR module, as text or bytecode.
bool LooksLikeStablehlo(absl::string_view bytes);

// How many devices its text says it is for (mhlo.num_partitions); 0 where it does not
// say, and for bytecode.
int64_t StablehloPartitions(absl::string_view bytes);

// E035.
absl::Status StablehloIsNotHlo(absl::string_view file_name);

}  // namespace shardcall::inline internal

#endif  // SHARDCALL_PARTITIONER_IR_TEXT_STABLEHLO_INPUT_H_
