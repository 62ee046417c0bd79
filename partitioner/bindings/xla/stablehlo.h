// SPDX-License-Identifier: Apache-2.0
// Prints a module as StableHLO text, the form in which a PJRT plugin takes the local computation
// of a custom call. It supports the ops that occur in such computations: custom calls, collectives
// over devices, elementwise ops, ops that move data, dot, reduce.
//
//   ENTRY main { x = f32[2,4] parameter(0)
//                ROOT y = f32[2,4] custom-call(x), custom_call_target="t", .. }
// is
//   module @m {
//     func.func @main(%arg0: tensor<2x4xf32>) -> (tensor<2x4xf32>) {
//       %v1 = "stablehlo.custom_call"(%arg0) {call_target_name = "t", ..
//
// A custom call lists the layouts of its operands and results, row-major by default: XLA chooses
// other layouts for calls without them.
#ifndef SHARDCALL_PARTITIONER_BINDINGS_XLA_STABLEHLO_H_
#define SHARDCALL_PARTITIONER_BINDINGS_XLA_STABLEHLO_H_

#include <string>

#include "absl/status/statusor.h"
#include "shardcall/partitioner/ir/module.h"
#include "shardcall/sharding/base/public.h"

namespace shardcall SHARDCALL_PUBLIC {

// The entry's flat results become those of @main. E149 (kUnimplemented) for an unsupported op,
// type or attribute. Verified modules only.
absl::StatusOr<std::string> StableHloText(const Module& module);

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_BINDINGS_XLA_STABLEHLO_H_
