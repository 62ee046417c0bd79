// SPDX-License-Identifier: Apache-2.0
// Libraries of the CUDA toolkit that are loaded when a handler first needs them: linked,
// cuBLASLt and cuSPARSE would be looked for, and read, at every start of every program.
#ifndef SHARDCALL_KERNELS_CUDA_SHARED_LIBRARY_H_
#define SHARDCALL_KERNELS_CUDA_SHARED_LIBRARY_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace shardcall::inline internal {

// The library of this name, "libcublasLt.so.13", wherever the loader finds it; it stays.
// E303 (kUnavailable) if it is nowhere.
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

}  // namespace shardcall::inline internal

#endif  // SHARDCALL_KERNELS_CUDA_SHARED_LIBRARY_H_
