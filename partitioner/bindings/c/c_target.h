// SPDX-License-Identifier: Apache-2.0
// Registers a target as the C interface describes it.
#ifndef SHARDCALL_PARTITIONER_BINDINGS_C_C_TARGET_H_
#define SHARDCALL_PARTITIONER_BINDINGS_C_C_TARGET_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "shardcall/kernels/ffi/handler.h"
#include "shardcall/partitioner/bindings/c/shardcall_c_plugin.h"
#include "shardcall/partitioner/custom_call/registry.h"

namespace shardcall {
inline namespace internal {

// E146 for a target that is incomplete or contradicts itself; else the errors of the two
// registries. With `handlers` null only rules are registered. `library` is kept as long as what
// the target registers.
absl::Status RegisterCTarget(const Shardcall_Target* target, absl::string_view source,
                             TargetRegistry* targets, HandlerRegistry* handlers,
                             std::shared_ptr<const void> library);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_BINDINGS_C_C_TARGET_H_
