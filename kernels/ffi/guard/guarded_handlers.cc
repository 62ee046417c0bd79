// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "absl/functional/function_ref.h"
#include "shardcall/kernels/ffi/cuda_device.h"
#include "shardcall/kernels/ffi/guard/guarded_call.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace {

// The registry with `wrap` applied to every Host handler; handlers of other platforms are called
// through staged copies.
HandlerRegistry Wrapped(const HandlerRegistry& handlers,
                        absl::FunctionRef<HostHandler(const HostHandler& host)> wrap) {
  HandlerRegistry out;
  for (const HandlerEntry* entry : handlers.List()) {
    HandlerEntry copy = *entry;
    if (copy.platform == "Host") copy.host = wrap(entry->host);
    SHARDCALL_CHECK(out.Register(std::move(copy)).ok());  // registered successfully before
  }
  for (const auto& [type, data] : handlers.user_data()) out.SetUserData(type, data);
  return out;
}

}  // namespace

HandlerRegistry GuardedHandlers(const HandlerRegistry& handlers) {
  return Wrapped(handlers, [](const HostHandler& host) { return Guarded(host); });
}

HandlerRegistry FencedHandlers(const HandlerRegistry& handlers, FenceSide side) {
  return Wrapped(handlers, [side](const HostHandler& host) { return Fenced(host, side); });
}

bool RunsInFork(const HandlerRegistry& handlers, absl::string_view target,
                absl::string_view backend_config) {
  const absl::StatusOr<const HandlerEntry*> entry = handlers.FindForRun(target, backend_config);
  return !entry.ok() || (*entry)->platform == "Host" || !CudaIsInUse();
}

}  // namespace internal
}  // namespace shardcall
