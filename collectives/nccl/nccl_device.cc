// SPDX-License-Identifier: Apache-2.0
#include "shardcall/collectives/nccl/nccl_device.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {

absl::Status CudaStatus(cudaError_t code, absl::string_view what) {
  if (code == cudaSuccess) return absl::OkStatus();
  return ToStatus({.code = "E309",
                   .message = absl::StrCat("CUDA failed in ", what, ": ", cudaGetErrorString(code),
                                           " (", static_cast<int>(code), ")"),
                   .fix = "See the driver and the device: nvidia-smi"},
                  code == cudaErrorMemoryAllocation ? absl::StatusCode::kResourceExhausted
                                                    : absl::StatusCode::kInternal);
}

absl::Status NcclStatus(ncclResult_t code, absl::string_view what) {
  if (code == ncclSuccess) return absl::OkStatus();
  const char* const detail = ncclGetLastError(nullptr);
  return ToStatus(
      {.code = code == ncclRemoteError ? "E304" : "E309",
       .message = absl::StrCat("NCCL failed in ", what, ": ", ncclGetErrorString(code),
                               detail == nullptr || *detail == '\0' ? "" : ": ",
                               detail == nullptr ? "" : detail),
       .fix = "Run again with NCCL_DEBUG=INFO, which says more"},
      code == ncclRemoteError ? absl::StatusCode::kUnavailable : absl::StatusCode::kInternal);
}

void DeviceScratch::Release() {
  if (data_ == nullptr) return;
  if (of_nccl_) {
    ncclMemFree(data_);
  } else {
    cudaFree(data_);
  }
  data_ = nullptr;
  bytes_ = 0;
}

absl::Status DeviceScratch::Grow(int64_t bytes) {
  Release();
  bytes = std::max<int64_t>(bytes, 256);
  void* made = nullptr;
  of_nccl_ = ncclMemAlloc(&made, bytes) == ncclSuccess && made != nullptr;
  if (!of_nccl_) {
    cudaGetLastError();  // clears the error of the attempt
    SHARDCALL_RETURN_IF_ERROR(CudaStatus(cudaMalloc(&made, bytes), "cudaMalloc"));
  }
  data_ = static_cast<char*>(made);
  bytes_ = bytes;
  return absl::OkStatus();
}

bool IsDevicePointer(const void* pointer) {
  cudaPointerAttributes attributes{};
  if (pointer == nullptr || cudaPointerGetAttributes(&attributes, pointer) != cudaSuccess) {
    cudaGetLastError();  // clears it
    return false;
  }
  return attributes.type == cudaMemoryTypeDevice || attributes.type == cudaMemoryTypeManaged;
}

std::optional<NativeReduction> FindNative(ReduceKind kind, ElementType type) {
  ncclDataType_t nccl_type;
  int units = 1;
  switch (type) {
    case ElementType::kS8: nccl_type = ncclInt8; break;
    case ElementType::kU8: nccl_type = ncclUint8; break;
    case ElementType::kS32: nccl_type = ncclInt32; break;
    case ElementType::kU32: nccl_type = ncclUint32; break;
    case ElementType::kS64: nccl_type = ncclInt64; break;
    case ElementType::kU64: nccl_type = ncclUint64; break;
    case ElementType::kF32: nccl_type = ncclFloat32; break;
    case ElementType::kF64: nccl_type = ncclFloat64; break;
    // Only sums: a product would mix the real and imaginary parts.
    case ElementType::kC64:
      nccl_type = ncclFloat32;
      units = 2;
      break;
    case ElementType::kC128:
      nccl_type = ncclFloat64;
      units = 2;
      break;
    // NCCL would round f16 and bf16 at every step, while the fold rounds once.
    default: return std::nullopt;
  }
  if (kind == ReduceKind::kSum) return NativeReduction{nccl_type, ncclSum, units};
  if (units > 1) return std::nullopt;
  // NCCL's maximum and minimum of floats drop a NaN, while ours propagate it.
  const bool is_float = type == ElementType::kF32 || type == ElementType::kF64;
  switch (kind) {
    case ReduceKind::kProduct: return NativeReduction{nccl_type, ncclProd, units};
    case ReduceKind::kMax:
      if (!is_float) return NativeReduction{nccl_type, ncclMax, units};
      return std::nullopt;
    case ReduceKind::kMin:
      if (!is_float) return NativeReduction{nccl_type, ncclMin, units};
      return std::nullopt;
    default: return std::nullopt;
  }
}

}  // namespace internal
}  // namespace shardcall
