// SPDX-License-Identifier: Apache-2.0
// Platforms that handlers are registered for.
#ifndef SHARDCALL_KERNELS_FFI_PLATFORM_H_
#define SHARDCALL_KERNELS_FFI_PLATFORM_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace shardcall {

// "Host", "CUDA" or "ROCM", of any case, and "cpu" and "gpu", which mean Host
// and CUDA. E141 for other names.
absl::StatusOr<std::string> PlatformFromName(absl::string_view name);

}  // namespace shardcall

#endif  // SHARDCALL_KERNELS_FFI_PLATFORM_H_
