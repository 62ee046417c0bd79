// SPDX-License-Identifier: Apache-2.0
// Reductions by their names in manifests and plugins.
#ifndef SHARDCALL_PARTITIONER_BINDINGS_MANIFEST_PARTIAL_OP_NAMES_H_
#define SHARDCALL_PARTITIONER_BINDINGS_MANIFEST_PARTIAL_OP_NAMES_H_

#include "absl/strings/string_view.h"
#include "shardcall/sharding/rule/rule.h"

namespace shardcall {
inline namespace internal {

inline constexpr char kPartialOpNames[] = "add, max, min, mul, and, or, xor";

// False, and `op` unchanged, for an unknown name.
inline bool PartialOpFromName(absl::string_view name, PartialOp* op) {
  for (const PartialOp known :
       {PartialOp::kSum, PartialOp::kMax, PartialOp::kMin, PartialOp::kProduct, PartialOp::kAnd,
        PartialOp::kOr, PartialOp::kXor}) {
    if (name != PartialOpName(known)) continue;
    *op = known;
    return true;
  }
  return false;
}

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_BINDINGS_MANIFEST_PARTIAL_OP_NAMES_H_
