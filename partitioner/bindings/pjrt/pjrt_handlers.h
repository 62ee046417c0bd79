// SPDX-License-Identifier: Apache-2.0
#ifndef SHARDCALL_PARTITIONER_BINDINGS_PJRT_PJRT_HANDLERS_H_
#define SHARDCALL_PARTITIONER_BINDINGS_PJRT_PJRT_HANDLERS_H_

#include <cstdint>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "shardcall/kernels/ffi/handler.h"
#include "shardcall/partitioner/bindings/pjrt/pjrt_plugin.h"
#include "shardcall/partitioner/ir/module.h"

namespace shardcall {
inline namespace internal {
namespace pjrt {

// Registers with the plugin the functions that ExportCalls (bindings/xla/exported_calls.h) returns
// for the custom calls of `local` and a platform of PJRT. Returns the calls, by id, that must
// become typed ones of another target. E140, and E148 if the plugin refuses.
absl::StatusOr<absl::flat_hash_map<uint32_t, std::string>> RegisterHandlers(
    const Plugin& plugin, absl::string_view platform, const Module& local, int num_devices,
    const HandlerRegistry& handlers, const absl::flat_hash_set<std::string>& known = {});

}  // namespace pjrt
}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_BINDINGS_PJRT_PJRT_HANDLERS_H_
