// SPDX-License-Identifier: Apache-2.0
// cuBLASLt, loaded at first use: its functions by name, and owners of its objects.
#ifndef SHARDCALL_KERNELS_CUDA_CUBLAS_LT_H_
#define SHARDCALL_KERNELS_CUDA_CUBLAS_LT_H_

#include <cublasLt.h>

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "shardcall/kernels/cuda/handle_pool.h"

namespace shardcall {
inline namespace internal {

struct CublasLt {
  decltype(&::cublasLtCreate) cublasLtCreate;
  decltype(&::cublasLtGetStatusString) cublasLtGetStatusString;
  decltype(&::cublasLtMatmul) cublasLtMatmul;
  decltype(&::cublasLtMatmulAlgoGetHeuristic) cublasLtMatmulAlgoGetHeuristic;
  decltype(&::cublasLtMatmulDescCreate) cublasLtMatmulDescCreate;
  decltype(&::cublasLtMatmulDescDestroy) cublasLtMatmulDescDestroy;
  decltype(&::cublasLtMatmulDescSetAttribute) cublasLtMatmulDescSetAttribute;
  decltype(&::cublasLtMatmulPreferenceCreate) cublasLtMatmulPreferenceCreate;
  decltype(&::cublasLtMatmulPreferenceDestroy) cublasLtMatmulPreferenceDestroy;
  decltype(&::cublasLtMatmulPreferenceSetAttribute) cublasLtMatmulPreferenceSetAttribute;
  decltype(&::cublasLtMatrixLayoutCreate) cublasLtMatrixLayoutCreate;
  decltype(&::cublasLtMatrixLayoutDestroy) cublasLtMatrixLayoutDestroy;
  decltype(&::cublasLtMatrixLayoutSetAttribute) cublasLtMatrixLayoutSetAttribute;

  // The process's instance. E303 if the library is missing; that is not cached, so that a later
  // call can succeed.
  static absl::StatusOr<const CublasLt*> Get();
  // OK, or E309 with the library's text.
  absl::Status Check(cublasStatus_t code, absl::string_view function) const;
  // A handle for the device, which must be the current one.
  absl::StatusOr<std::shared_ptr<PooledHandle>> Handle(HandlerDevice& device) const;

  // Owners of library objects; may be null.
  template <typename T>
  using Owner = std::unique_ptr<T, cublasStatus_t (*)(T*)>;
  using Operation = Owner<cublasLtMatmulDescOpaque_t>;
  using Layout = Owner<cublasLtMatrixLayoutOpaque_t>;
  using Preference = Owner<cublasLtMatmulPreferenceOpaque_t>;
  absl::StatusOr<Operation> NewOperation(cublasComputeType_t compute, cudaDataType_t scale) const;
  absl::StatusOr<Preference> NewPreference() const;
  // Column-major matrices of this type, with `ld` elements between columns, and `batch` of them in
  // sequence.
  absl::StatusOr<Layout> NewLayout(cudaDataType_t type, int64_t rows, int64_t columns, int64_t ld,
                                   int32_t batch, int64_t batch_stride) const;
};

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_KERNELS_CUDA_CUBLAS_LT_H_
