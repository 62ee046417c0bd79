// SPDX-License-Identifier: Apache-2.0
// The reductions: of partial values, of the collectives, and of the rules' reduction factors.
#ifndef SHARDCALL_SHARDING_PARTIAL_OP_H_
#define SHARDCALL_SHARDING_PARTIAL_OP_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "shardcall/sharding/base/public.h"

namespace shardcall SHARDCALL_PUBLIC {

// How partial values are combined. The numbers are those of SHARDCALL_FFI_SUM and its like.
enum class PartialOp : uint8_t { kSum, kProduct, kMax, kMin, kAnd, kOr, kXor };
absl::string_view PartialOpName(PartialOp op);  // as HLO's computations: "add", "mul", "max", ..

}  // namespace shardcall

#endif  // SHARDCALL_SHARDING_PARTIAL_OP_H_
