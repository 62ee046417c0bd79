// SPDX-License-Identifier: Apache-2.0
// Rules of the shipped targets, one file per family. The kernels document the operands. A kernel
// with optional operands or results, or with an attribute that changes the order of dimensions, has
// one rule per signature.
#ifndef SHARDCALL_PARTITIONER_CUSTOM_CALL_TARGETS_SHIPPED_TARGETS_H_
#define SHARDCALL_PARTITIONER_CUSTOM_CALL_TARGETS_SHIPPED_TARGETS_H_

#include "absl/status/status.h"
#include "shardcall/partitioner/custom_call/registry.h"

namespace shardcall {
inline namespace internal {

absl::Status RegisterReluTargets(TargetRegistry& registry);  // custom_relu, custom_relu_bwd
absl::Status RegisterNormTargets(TargetRegistry& registry);  // rms_norm and rms_norm_bwd
absl::Status RegisterAttentionTargets(
    TargetRegistry& registry);  // flash_attention, forward and backward
absl::Status RegisterGemmTargets(TargetRegistry& registry);    // gemm, cublas_gemm, gemm_bwd
absl::Status RegisterFftTargets(TargetRegistry& registry);     // fft
absl::Status RegisterLapackTargets(TargetRegistry& registry);  // lapack_sgetrf_ffi and its kin
absl::Status RegisterUntypedLapackTargets(
    TargetRegistry& registry);                                     // lapack_sgetrf, blas_strsm, ..
absl::Status RegisterLossTargets(TargetRegistry& registry);        // softmax_cross_entropy
absl::Status RegisterMoeTargets(TargetRegistry& registry);         // moe_dispatch and moe_combine
absl::Status RegisterCollectiveTargets(TargetRegistry& registry);  // nccl_allreduce
absl::Status RegisterSparseTargets(TargetRegistry& registry);  // sparse_matmul, sparse_matmul_bwd
absl::Status RegisterTopKTargets(TargetRegistry& registry);    // topk
absl::Status RegisterJaxlibTargets(TargetRegistry& registry);  // those of jaxlib_targets.h

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_CUSTOM_CALL_TARGETS_SHIPPED_TARGETS_H_
