// SPDX-License-Identifier: Apache-2.0
#ifndef SHARDCALL_PARTITIONER_BINDINGS_PJRT_WRAPPER_FRAMEWORK_PARTITIONERS_H_
#define SHARDCALL_PARTITIONER_BINDINGS_PJRT_WRAPPER_FRAMEWORK_PARTITIONERS_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "shardcall/partitioner/bindings/xla/pjrt_partitioner.h"
#include "shardcall/partitioner/custom_call/registry.h"

namespace shardcall {
inline namespace internal {
namespace pjrt {

// Converts StableHLO to a serialised HloModuleProto.
using HloOfStablehlo = std::function<absl::StatusOr<std::string>(absl::string_view program)>;

// Converts the partitioner that a framework has registered with its plugin for a target (PJRT's
// extension 2) to PartitionerCallbacks. An error from `partition` is E121, an answer that does not
// fit the call E120.
PartitionerCallbacks CallbacksOfFramework(std::shared_ptr<Shardcall_PjrtCallbacks> framework,
                                          HloOfStablehlo to_hlo);

}  // namespace pjrt
}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_BINDINGS_PJRT_WRAPPER_FRAMEWORK_PARTITIONERS_H_
