// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/bindings/pjrt/pjrt_handlers.h"

#include <utility>

#include "shardcall/partitioner/bindings/xla/exported_calls.h"
#include "shardcall/partitioner/bindings/xla/pjrt_partitioner.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace pjrt {

absl::StatusOr<absl::flat_hash_map<uint32_t, std::string>> RegisterHandlers(
    const Plugin& plugin, absl::string_view platform, const Module& local, int num_devices,
    const HandlerRegistry& handlers, const absl::flat_hash_set<std::string>& known) {
  SHARDCALL_ASSIGN_OR_RETURN(ExportedCalls calls,
                             ExportCalls(local, platform, num_devices, handlers, known));
  for (const ExportedTarget& target : calls.targets) {
    SHARDCALL_RETURN_IF_ERROR(
        RegisterHandlerWithPjrt(plugin.c_api(), target.name, target.platform, target.function));
  }
  return std::move(calls.renamed);
}

}  // namespace pjrt
}  // namespace internal
}  // namespace shardcall
