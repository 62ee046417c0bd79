// SPDX-License-Identifier: Apache-2.0
// VJPs, batching rules and lowerings of the C interface.
#ifndef SHARDCALL_PARTITIONER_BINDINGS_C_C_FACTS_H_
#define SHARDCALL_PARTITIONER_BINDINGS_C_C_FACTS_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "shardcall/partitioner/bindings/c/shardcall_c_derived.h"
#include "shardcall/partitioner/custom_call/derive/lowering.h"
#include "shardcall/partitioner/custom_call/registry.h"

namespace shardcall {
inline namespace internal {

// E148 for an invalid struct; other errors as for TargetRegistry::RegisterVjp and
// RegisterBatching.
absl::Status RegisterCVjp(absl::string_view target, const Shardcall_Vjp* vjp,
                          TargetRegistry* targets);
absl::Status RegisterCBatching(absl::string_view target, const Shardcall_Batching* batching,
                               TargetRegistry* targets);
absl::Status RegisterCLimits(absl::string_view target, const Shardcall_CallLimits* limits,
                             TargetRegistry* targets);
// `library` lives as long as the function may be called.
absl::Status RegisterCLowering(const Shardcall_Lowering* lowering, absl::string_view source,
                               LoweringRegistry* lowerings, std::shared_ptr<const void> library);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_BINDINGS_C_C_FACTS_H_
