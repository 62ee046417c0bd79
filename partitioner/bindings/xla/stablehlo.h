// SPDX-License-Identifier: Apache-2.0
// StableHLO text of a module: the form in which a PJRT plugin takes the local
// computation of a custom call. The ops are those that such computations are made
// of: custom calls, collectives over devices, elementwise ops, what moves elements,
// dot, reduce.
//
//   ENTRY main { x = f32[2,4] parameter(0)
//                ROOT y = f32[2,4] custom-call(x), custom_call_target="t", .. }
// is
//   module @m {
//     func.func @main(%arg0: tensor<2x4xf32>) -> (tensor<2x4xf32>) {
//       %v1 = "stablehlo.custom_call"(%arg0) {call_target_name = "t", ..
//
// A custom call names the layouts of its operands and results, row-major where it
// states none: XLA picks others for those that do not.
#ifndef SHARDCALL_PARTITIONER_BINDINGS_XLA_STABLEHLO_H_
#define SHARDCALL_PARTITIONER_BINDINGS_XLA_STABLEHLO_H_

#include <string>

#include "absl/status/statusor.h"
#include "shardcall/partitioner/ir/module.h"
#include "shardcall/sharding/base/public.h"

namespace shardcall SHARDCALL_PUBLIC {

// The entry's flat results are those of @main. E149 (kUnimplemented) for an op, a
// type or an attribute that is not among those above. Verified modules only.
absl::StatusOr<std::string> StableHloText(const Module& module);

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_BINDINGS_XLA_STABLEHLO_H_
