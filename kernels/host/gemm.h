// SPDX-License-Identifier: Apache-2.0
// Common to cublas_gemm and its gradient.
#ifndef SHARDCALL_KERNELS_HOST_GEMM_H_
#define SHARDCALL_KERNELS_HOST_GEMM_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "shardcall/kernels/host/arguments.h"
#include "shardcall/kernels/math/blas.h"

namespace shardcall {
inline namespace internal {

// The element types of cublas_gemm.
inline constexpr ElementType kGemmTypes[] = {ElementType::kF32, ElementType::kBF16,
                                             ElementType::kF16, ElementType::kF64,
                                             ElementType::kC64, ElementType::kC128};

// Attributes and extents of d[batch, m, n] = alpha op(a) op(b) + beta c.
struct GemmCall {
  BlasOp op_a = BlasOp::kNone, op_b = BlasOp::kNone;
  double alpha = 1, beta = 0;
  int64_t batch = 1, m = 0, n = 0, k = 0;
};
// The places of these arrays among a call's arguments, or of others with their shapes.
struct GemmPlaces {
  ArgumentPlace a, b, c, d;
  bool has_c;
};

// Checks the arguments, whose counts are checked already. a must have one of `types`.
absl::StatusOr<GemmCall> CheckGemm(const HandlerContext& context, const CallArguments& args,
                                   absl::Span<const ElementType> types, const GemmPlaces& places);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_KERNELS_HOST_GEMM_H_
