// SPDX-License-Identifier: Apache-2.0
#ifndef SHARDCALL_KERNELS_CUDA_NCCL_ALLREDUCE_H_
#define SHARDCALL_KERNELS_CUDA_NCCL_ALLREDUCE_H_

#include "shardcall/kernels/ffi/handler.h"

namespace shardcall {
inline namespace internal {

absl::Status CudaNcclAllReduce(const HandlerContext& context, absl::Span<const BufferView> operands,
                               absl::Span<const BufferView> results);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_KERNELS_CUDA_NCCL_ALLREDUCE_H_
