// SPDX-License-Identifier: Apache-2.0
// Reductions by the names that manifests and plugins write.
#ifndef SHARDCALL_PARTITIONER_API_PARTIAL_OP_NAMES_H_
#define SHARDCALL_PARTITIONER_API_PARTIAL_OP_NAMES_H_

#include <utility>

#include "absl/strings/string_view.h"
#include "sharding/rule.h"

namespace shardcall {

inline constexpr char kPartialOpNames[] = "add, max, min, mul, and, or, xor";

// False, and `op` left alone, if there is none of that name.
inline bool PartialOpFromName(absl::string_view name, PartialOp* op) {
  constexpr std::pair<const char*, PartialOp> kOps[] = {
      {"add", PartialOp::kSum},     {"max", PartialOp::kMax}, {"min", PartialOp::kMin},
      {"mul", PartialOp::kProduct}, {"and", PartialOp::kAnd}, {"or", PartialOp::kOr},
      {"xor", PartialOp::kXor}};
  for (const auto& [known, value] : kOps) {
    if (name != known) continue;
    *op = value;
    return true;
  }
  return false;
}

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_API_PARTIAL_OP_NAMES_H_
