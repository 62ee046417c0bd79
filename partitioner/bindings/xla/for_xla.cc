// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/bindings/xla/for_xla.h"

#include <memory>
#include <utility>
#include <vector>

#include "shardcall/kernels/ffi/platform.h"
#include "shardcall/partitioner/ir/build/expanded_calls.h"
#include "shardcall/partitioner/pass/pass.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {

absl::StatusOr<std::optional<Module>> ForXla(const Module& module, absl::string_view platform) {
  std::optional<Module> out;
  std::vector<std::unique_ptr<Pass>> passes;
  passes.push_back(MakeOrderedExtrema());
  if (PlatformKey(platform) == PlatformKey("Host")) {
    SHARDCALL_ASSIGN_OR_RETURN(absl::optional<Module> expanded, ExpandCalls(module, kRunsAsOps));
    if (expanded) out = *std::move(expanded);
    passes.push_back(MakeCombinedReductions());  // GPUs have a pass of XLA's for that
    passes.push_back(MakeOuterCollectives());
  }
  for (const std::unique_ptr<Pass>& pass : passes) {
    SHARDCALL_ASSIGN_OR_RETURN(PassResult result, pass->Run(out.has_value() ? *out : module));
    if (result.changed) out = std::move(result.module);
  }
  if (out.has_value()) AssignNames(&*out);
  return out;
}

}  // namespace internal
}  // namespace shardcall
