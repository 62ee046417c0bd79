// SPDX-License-Identifier: Apache-2.0
#ifndef SHARDCALL_KERNELS_CUDA_CUDA_TYPE_H_
#define SHARDCALL_KERNELS_CUDA_CUDA_TYPE_H_

#include "shardcall/kernels/cuda/launch.h"
#include "shardcall/sharding/element_type.h"

namespace shardcall {
inline namespace internal {

// The type in terms of the .cu files; f32 for types that they do not have.
inline CudaType CudaTypeOf(ElementType type) {
  switch (type) {
    case ElementType::kF64: return CudaType::kF64;
    case ElementType::kF16: return CudaType::kF16;
    case ElementType::kBF16: return CudaType::kBF16;
    case ElementType::kS8: return CudaType::kS8;
    case ElementType::kS16: return CudaType::kS16;
    case ElementType::kS32: return CudaType::kS32;
    case ElementType::kS64: return CudaType::kS64;
    case ElementType::kU8: return CudaType::kU8;
    case ElementType::kU16: return CudaType::kU16;
    case ElementType::kU32: return CudaType::kU32;
    case ElementType::kU64: return CudaType::kU64;
    case ElementType::kC64: return CudaType::kC64;
    case ElementType::kC128: return CudaType::kC128;
    default: return CudaType::kF32;
  }
}

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_KERNELS_CUDA_CUDA_TYPE_H_
