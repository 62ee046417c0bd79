// SPDX-License-Identifier: Apache-2.0
// The error of StableHLO that is not damaged, but has something that is not read.
#ifndef SHARDCALL_PARTITIONER_IR_STABLEHLO_BYTECODE_NOT_CONVERTED_H_
#define SHARDCALL_PARTITIONER_IR_STABLEHLO_BYTECODE_NOT_CONVERTED_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace shardcall {
inline namespace internal {

// E035 (kUnimplemented): the module has `what`, which the reader does not convert.
absl::Status StablehloNotConverted(absl::string_view what);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_STABLEHLO_BYTECODE_NOT_CONVERTED_H_
