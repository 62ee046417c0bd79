// SPDX-License-Identifier: Apache-2.0
// The rules of custom_relu and its gradient.
#include "shardcall/partitioner/custom_call/targets/shipped_targets.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {

absl::Status RegisterReluTargets(TargetRegistry& registry) {
  SHARDCALL_RETURN_IF_ERROR(registry.RegisterRules(
      "custom_relu", {{.text = {.rule = "... -> ..."}, .types = "T -> T"}}, "", "built in"));
  SHARDCALL_RETURN_IF_ERROR(registry.RegisterRules(
      "custom_relu_bwd", {{.text = {.rule = "..., ... -> ..."}, .types = "T, T -> T"}}, "",
      "built in"));
  return registry.RegisterVjp("custom_relu",
                              {.target = "custom_relu_bwd",
                               .arguments = {VjpArgument::Cotangent(0), VjpArgument::Operand(0)},
                               .gradients = {0}});
}

}  // namespace internal
}  // namespace shardcall
