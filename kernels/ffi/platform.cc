// SPDX-License-Identifier: Apache-2.0
#include "shardcall/kernels/ffi/platform.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
namespace {

// A platform's name in XLA's registrations, and its names in jaxlib and in PJRT clients. In XLA,
// "gpu" means the platform that it was built for; in jaxlib and here it means CUDA.
struct Platform {
  absl::string_view name, alias;
};
constexpr Platform kPlatforms[] = {
    {"Host", "cpu"}, {"CUDA", "gpu"}, {"ROCM", ""}, {"SYCL", ""}, {"TPU", ""}};

absl::string_view Spelled(absl::string_view name) {
  for (const Platform& p : kPlatforms) {
    if (absl::EqualsIgnoreCase(name, p.name)) return p.name;
    if (!p.alias.empty() && absl::EqualsIgnoreCase(name, p.alias)) return p.name;
  }
  return name;
}

}  // namespace

absl::StatusOr<std::string> PlatformFromName(absl::string_view name) {
  if (!name.empty()) return std::string(Spelled(name));
  return ToStatus({.code = "E141",
                   .message = "a platform has no name",
                   .expected = "Host, CUDA, or any other name",
                   .found = "an empty one",
                   .fix = "write Host for a function that runs on the CPU"});
}

std::string PlatformKey(absl::string_view name) { return absl::AsciiStrToLower(Spelled(name)); }

}  // namespace shardcall
