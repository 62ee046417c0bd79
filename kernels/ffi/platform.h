// SPDX-License-Identifier: Apache-2.0
// Platforms that handlers are registered for. Any name is one. Those of XLA have the
// spelling and the aliases of one table, others stay as they are written; capitals make
// no difference, as for XLA.
#ifndef SHARDCALL_KERNELS_FFI_PLATFORM_H_
#define SHARDCALL_KERNELS_FFI_PLATFORM_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "shardcall/sharding/base/public.h"

namespace shardcall SHARDCALL_PUBLIC {

// "Host" for host and cpu, "CUDA" for cuda and gpu, "ROCM", "SYCL" and "TPU", each of any
// case; other names as they are. E141 for an empty one.
absl::StatusOr<std::string> PlatformFromName(absl::string_view name);

// Equal for names of one platform, by alias or by capitals, and for no others.
std::string PlatformKey(absl::string_view name);

}  // namespace shardcall

#endif  // SHARDCALL_KERNELS_FFI_PLATFORM_H_
