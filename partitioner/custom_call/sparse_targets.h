// SPDX-License-Identifier: Apache-2.0
#ifndef SHARDCALL_PARTITIONER_CUSTOM_CALL_SPARSE_TARGETS_H_
#define SHARDCALL_PARTITIONER_CUSTOM_CALL_SPARSE_TARGETS_H_

#include "absl/status/status.h"
#include "partitioner/custom_call/registry.h"

namespace shardcall {

absl::Status RegisterSparseTargets(TargetRegistry& registry);

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_CUSTOM_CALL_SPARSE_TARGETS_H_
