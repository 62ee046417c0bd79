// SPDX-License-Identifier: Apache-2.0
// Calls the function that the README shows to whoever links the partitioner.
#include <cstdio>
#include <string>

#include "absl/status/statusor.h"

absl::StatusOr<std::string> PartitionText(const std::string& text, int64_t devices);

int main() {
  const absl::StatusOr<std::string> local = PartitionText(R"(HloModule m
ENTRY e {
  x = f32[6,4] parameter(0), sharding={devices=[2,1]<=[2]}
  ROOT y = custom-call(x), custom_call_target="custom_relu", api_version=API_VERSION_TYPED_FFI
})",
                                                          2);
  std::printf("%s\n", local.ok() ? local->c_str() : std::string(local.status().message()).c_str());
  return local.ok() ? 0 : 1;
}
