// SPDX-License-Identifier: Apache-2.0
// Libraries of the CUDA toolkit, loaded when a handler first needs them. If they were linked, every
// program would search and load cuBLASLt and cuSPARSE at start.
#ifndef SHARDCALL_KERNELS_CUDA_SHARED_LIBRARY_H_
#define SHARDCALL_KERNELS_CUDA_SHARED_LIBRARY_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace shardcall {
inline namespace internal {

// The library of this name, such as "libcublasLt.so.13", from the loader's search path; it is never
// unloaded. E303 (kUnavailable) if it is not found.
absl::StatusOr<void*> OpenSharedLibrary(const std::string& name);

// E303 if the library has no function of this name.
absl::Status FindAddress(void* library, const std::string& library_name, const char* name,
                         void** address);

template <typename Function>
absl::Status FindFunction(void* library, const std::string& library_name, const char* name,
                          Function** function) {
  void* address = nullptr;
  absl::Status status = FindAddress(library, library_name, name, &address);
  *function = reinterpret_cast<Function*>(address);
  return status;
}

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_KERNELS_CUDA_SHARED_LIBRARY_H_
