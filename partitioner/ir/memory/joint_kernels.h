// SPDX-License-Identifier: Apache-2.0
// XLA:GPU's multi-output fusion.
#ifndef SHARDCALL_PARTITIONER_IR_MEMORY_JOINT_KERNELS_H_
#define SHARDCALL_PARTITIONER_IR_MEMORY_JOINT_KERNELS_H_

#include <vector>

#include "shardcall/partitioner/ir/memory/run_steps.h"
#include "shardcall/partitioner/ir/module.h"

namespace shardcall {
inline namespace internal {

// The steps that become one kernel with several results, two or more each, by place: those that
// compute as many elements and read the same value, or of which one reads the other. Of a
// computation of more than kMostJoinedSteps steps, none.
inline constexpr int kMostJoinedSteps = 1500;
std::vector<std::vector<int>> FindJointKernels(const Module& m, const RunSteps& steps);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_MEMORY_JOINT_KERNELS_H_
