// SPDX-License-Identifier: Apache-2.0
#include "kernels/ffi/platform.h"

#include "absl/strings/match.h"
#include "sharding/status.h"

namespace shardcall {

absl::StatusOr<std::string> PlatformFromName(absl::string_view name) {
  for (const char* known : {"Host", "CUDA", "ROCM"}) {
    if (absl::EqualsIgnoreCase(name, known)) return std::string(known);
  }
  if (absl::EqualsIgnoreCase(name, "cpu")) return std::string("Host");
  if (absl::EqualsIgnoreCase(name, "gpu")) return std::string("CUDA");
  return ToStatus({.code = "E141",
                   .message = "there is no such platform",
                   .expected = "Host, CUDA or ROCM",
                   .found = std::string(name),
                   .fix = "write Host for a function that runs on the CPU"});
}

}  // namespace shardcall
