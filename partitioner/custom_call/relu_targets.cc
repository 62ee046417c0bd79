// SPDX-License-Identifier: Apache-2.0
// The rule of custom_relu.
#include "partitioner/custom_call/shipped_targets.h"

namespace shardcall {

absl::Status RegisterReluTargets(TargetRegistry& registry) {
  return registry.RegisterRules(
      "custom_relu", {{.text = {.rule = "... -> ..."}, .types = "T -> T"}}, "", "built in");
}

}  // namespace shardcall
