// SPDX-License-Identifier: Apache-2.0
// Stopping calls in C.
#include "shardcall/partitioner/bindings/c/c_internal.h"
#include "shardcall/sharding/base/status.h"
#include "shardcall/sharding/base/stop.h"

using namespace shardcall;  // NOLINT: definitions of C functions

struct Shardcall_Stop {
  StopSource source;
};
struct Shardcall_StopScope {
  explicit Shardcall_StopScope(StopOptions options) : scope(std::move(options)) {}
  StopScope scope;
};

extern "C" {

Shardcall_Error* Shardcall_Stop_Create(Shardcall_Stop** stop) {
  static constexpr char kName[] = "Shardcall_Stop_Create";
  return Guarded(kName, [&] {
    SHARDCALL_RETURN_IF_ERROR(NotNull(kName, "stop", stop));
    *stop = new Shardcall_Stop;
    return absl::OkStatus();
  });
}

void Shardcall_Stop_Request(Shardcall_Stop* stop) {
  if (stop != nullptr) stop->source.Request();
}

void Shardcall_Stop_Destroy(Shardcall_Stop* stop) { delete stop; }

Shardcall_Error* Shardcall_StopScope_Begin(const Shardcall_Stop* stop, double limit_s,
                                           Shardcall_StopScope** scope) {
  static constexpr char kName[] = "Shardcall_StopScope_Begin";
  return Guarded(kName, [&] {
    SHARDCALL_RETURN_IF_ERROR(NotNull(kName, "scope", scope));
    if (!(limit_s >= 0)) {
      return BadArgument(kName, "a limit_s of zero or more", absl::StrCat(limit_s));
    }
    StopOptions options;
    if (stop != nullptr) options.source = &stop->source;
    if (limit_s > 0) options.limit = absl::Seconds(limit_s);
    *scope = new Shardcall_StopScope(std::move(options));
    return absl::OkStatus();
  });
}

void Shardcall_StopScope_End(Shardcall_StopScope* scope) { delete scope; }

}  // extern "C"
