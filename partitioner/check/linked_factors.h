// SPDX-License-Identifier: Apache-2.0
// Factors that a rule keeps apart but that are one dimension of the target.
#ifndef SHARDCALL_PARTITIONER_CHECK_LINKED_FACTORS_H_
#define SHARDCALL_PARTITIONER_CHECK_LINKED_FACTORS_H_

#include <vector>

#include "absl/functional/function_ref.h"
#include "shardcall/partitioner/check/call_sizes.h"

namespace shardcall {
inline namespace internal {

// Calls `visit` for each group of two or three factors, which the rule wants whole, that the
// handler takes only in one common size, with these factors linked in `sizes`.
void ForEachLinkedGroup(CallSizes* sizes,
                        absl::FunctionRef<void(const std::vector<int>& group)> visit);

// Kinds with which a factor is not sharded.
bool IsKeptWhole(const Factor& f);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_CHECK_LINKED_FACTORS_H_
