// SPDX-License-Identifier: Apache-2.0
#ifndef SHARDCALL_PARTITIONER_CUSTOM_CALL_LOSS_TARGETS_H_
#define SHARDCALL_PARTITIONER_CUSTOM_CALL_LOSS_TARGETS_H_

#include "absl/status/status.h"
#include "partitioner/custom_call/registry.h"

namespace shardcall {

// softmax_cross_entropy, its gradient, and what a part of the vocabulary gives.
absl::Status RegisterLossTargets(TargetRegistry& registry);

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_CUSTOM_CALL_LOSS_TARGETS_H_
