// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/custom_call/registry.h"
#include "shardcall/partitioner/custom_call/targets/shipped_targets.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {

absl::Status RegisterBuiltinTargets(TargetRegistry& registry) {
  for (const auto register_targets :
       {RegisterReluTargets, RegisterNormTargets, RegisterAttentionTargets, RegisterGemmTargets,
        RegisterFftTargets, RegisterLapackTargets, RegisterUntypedLapackTargets,
        RegisterLossTargets, RegisterMoeTargets, RegisterCollectiveTargets, RegisterSparseTargets,
        RegisterTopKTargets, RegisterJaxlibTargets}) {
    SHARDCALL_RETURN_IF_ERROR(register_targets(registry));
  }
  return absl::OkStatus();
}

}  // namespace shardcall
