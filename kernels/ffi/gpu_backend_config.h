// SPDX-License-Identifier: Apache-2.0
// The backend_config of calls in XLA:GPU's programs: JSON that contains the attributes of a
// typed-FFI call as text.
//   {"operation_queue_id":"0","custom_call_backend_config":{"attributes":"{n = 3 : i32}"}}
#ifndef SHARDCALL_KERNELS_FFI_GPU_BACKEND_CONFIG_H_
#define SHARDCALL_KERNELS_FFI_GPU_BACKEND_CONFIG_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace shardcall {
inline namespace internal {

// Whether the text is a JSON object rather than an MLIR dictionary: it begins with a quoted key and
// a colon.
bool IsGpuBackendConfig(absl::string_view text);
// The text of the attributes; "" if there is none. E131 for invalid JSON.
absl::StatusOr<std::string> AttributesOfGpuBackendConfig(absl::string_view text);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_KERNELS_FFI_GPU_BACKEND_CONFIG_H_
