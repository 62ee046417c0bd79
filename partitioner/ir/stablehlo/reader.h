// SPDX-License-Identifier: Apache-2.0
// Reads StableHLO as JAX lowers to it, in MLIR bytecode, without XLA.
#ifndef SHARDCALL_PARTITIONER_IR_STABLEHLO_READER_H_
#define SHARDCALL_PARTITIONER_IR_STABLEHLO_READER_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "shardcall/partitioner/ir/module.h"
#include "shardcall/sharding/context.h"

namespace shardcall {
inline namespace internal {

// The HLO module of a StableHLO module with a function main, with the annotations of Shardy or
// GSPMD as XLA would write them, without verifying it. `bytes`: MLIR bytecode of version 4 or
// older. E035: kInvalidArgument if they are damaged; kUnimplemented if they hold an op, an
// attribute or a type that this reader does not convert, which the message names.
absl::StatusOr<Module> ReadStablehloBytecode(absl::string_view bytes,
                                             std::shared_ptr<Context> context);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_STABLEHLO_READER_H_
