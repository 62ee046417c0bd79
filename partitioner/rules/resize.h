// SPDX-License-Identifier: Apache-2.0
// Changes a computation to arrays of other sizes.
#ifndef SHARDCALL_PARTITIONER_RULES_RESIZE_H_
#define SHARDCALL_PARTITIONER_RULES_RESIZE_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "shardcall/partitioner/custom_call/registry.h"
#include "shardcall/partitioner/ir/module.h"

namespace shardcall {
inline namespace internal {

// `module` with parameters (flat leaves) of the given dims, and with all other shapes and sizes in
// attributes changed to match; calls come inlined. Constants stay as they are: one that was made
// from a size keeps the old size.
//
// Errors E113: ranks that differ, sizes that contradict each other, and ops that fix a size: a
// slice or a pad of a dimension that changes, or a constant array of several values. Other errors
// are those of import and of the verifier.
absl::StatusOr<Module> ResizeModule(Module module,
                                    absl::Span<const std::vector<int64_t>> parameters,
                                    const TargetRegistry* targets);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_RULES_RESIZE_H_
