// SPDX-License-Identifier: Apache-2.0
// Writes a module as StableHLO in MLIR bytecode, without XLA: the form in which JAX compiles
// programs, and in which a PJRT plugin takes the local computation of a custom call.
//
//   ENTRY main { x = f32[2,4] parameter(0)
//                ROOT y = f32[2,4] custom-call(x), custom_call_target="t", .. }
// is
//   module @m {
//     func.func @main(%arg0: tensor<2x4xf32>) -> tensor<2x4xf32> {
//       %0 = "stablehlo.custom_call"(%arg0) {call_target_name = "t", ..
//
// Tuples do not exist there: their leaves are values of their own.
#ifndef SHARDCALL_PARTITIONER_IR_STABLEHLO_WRITER_H_
#define SHARDCALL_PARTITIONER_IR_STABLEHLO_WRITER_H_

#include <cstdint>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "shardcall/partitioner/ir/module.h"
#include "shardcall/sharding/base/public.h"

namespace shardcall SHARDCALL_PUBLIC {

struct StablehloOptions {
  // Lists the layouts of operands and results of each custom call, row-major by default. XLA
  // chooses layouts for calls without them.
  bool all_call_layouts = false;
  // Custom calls, by id, that become typed ones of another target, without a backend_config.
  absl::flat_hash_map<uint32_t, std::string> typed_calls;
};

// MLIR bytecode of version 4. The entry's flat parameters and results are those of @main;
// shardings, donation, layouts of the entry, frontend attributes and metadata are kept. E149
// (kUnimplemented) names an op, a type or an attribute that is not written. Verified modules only.
absl::StatusOr<std::string> WriteStablehloBytecode(const Module& module,
                                                   const StablehloOptions& options = {});

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_STABLEHLO_WRITER_H_
