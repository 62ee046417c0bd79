// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/bindings/xla/for_xla.h"

#include <utility>

#include "shardcall/partitioner/pass/pass.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {

absl::StatusOr<std::optional<Module>> ForXla(const Module& module) {
  SHARDCALL_ASSIGN_OR_RETURN(PassResult result, MakeOrderedExtrema()->Run(module));
  if (!result.changed) return std::nullopt;
  AssignNames(&result.module);
  return std::move(result.module);
}

}  // namespace internal
}  // namespace shardcall
