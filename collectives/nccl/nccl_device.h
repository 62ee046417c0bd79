// SPDX-License-Identifier: Apache-2.0
// RAII owners of the CUDA and NCCL resources of the NCCL backend, and their errors as statuses.
#ifndef SHARDCALL_COLLECTIVES_NCCL_NCCL_DEVICE_H_
#define SHARDCALL_COLLECTIVES_NCCL_NCCL_DEVICE_H_

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "shardcall/collectives/communicator.h"
#include "shardcall/sharding/element_type.h"

namespace shardcall {
inline namespace internal {

// OK, or E309 with the library's text.
absl::Status CudaStatus(cudaError_t code, absl::string_view what);
absl::Status NcclStatus(ncclResult_t code, absl::string_view what);

// Device memory that grows and is kept. It is allocated by NCCL where possible, since only such
// memory can be registered for every transport.
class DeviceScratch {
 public:
  DeviceScratch() = default;
  ~DeviceScratch() { Release(); }
  DeviceScratch(const DeviceScratch&) = delete;
  DeviceScratch& operator=(const DeviceScratch&) = delete;

  char* data() const { return data_; }
  int64_t bytes() const { return bytes_; }
  // Ensures at least `bytes`, never null; the contents are lost if it grows. No work that uses it
  // may be in progress, and no communicator may have it registered.
  absl::Status Grow(int64_t bytes);

 private:
  void Release();
  char* data_ = nullptr;
  int64_t bytes_ = 0;
  bool of_nccl_ = false;
};

// Whether a kernel or NCCL may read the pointer; host memory is staged.
bool IsDevicePointer(const void* pointer);

// NCCL's form of a reduction.
struct NativeReduction {
  ncclDataType_t type;
  ncclRedOp_t op;
  int units = 1;  // NCCL elements per element: 2 for complex numbers
};
// Nullopt where NCCL has no such type or reduction, or would round intermediate sums.
std::optional<NativeReduction> FindNative(ReduceKind kind, ElementType type);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_COLLECTIVES_NCCL_NCCL_DEVICE_H_
