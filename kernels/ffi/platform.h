// SPDX-License-Identifier: Apache-2.0
// Platforms that handlers are registered for. Any name is allowed. Those of XLA have a fixed
// spelling and aliases, others keep their spelling; names are case-insensitive, as in XLA.
#ifndef SHARDCALL_KERNELS_FFI_PLATFORM_H_
#define SHARDCALL_KERNELS_FFI_PLATFORM_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "shardcall/sharding/base/public.h"

namespace shardcall SHARDCALL_PUBLIC {

// "Host" for host and cpu, "CUDA" for cuda and gpu, "ROCM", "SYCL" and "TPU", in any case; other
// names unchanged. E141 for an empty name.
absl::StatusOr<std::string> PlatformFromName(absl::string_view name);

// Equal for names of the same platform (aliases, or different case), and only for those.
std::string PlatformKey(absl::string_view name);

}  // namespace shardcall

#endif  // SHARDCALL_KERNELS_FFI_PLATFORM_H_
