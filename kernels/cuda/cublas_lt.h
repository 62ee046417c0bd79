// SPDX-License-Identifier: Apache-2.0
// cuBLASLt, loaded when it is first needed: its functions by their names, and owners of
// what they make.
#ifndef SHARDCALL_KERNELS_CUDA_CUBLAS_LT_H_
#define SHARDCALL_KERNELS_CUDA_CUBLAS_LT_H_

#include <cublasLt.h>

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "shardcall/kernels/cuda/handle_pool.h"

namespace shardcall::inline internal {

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

  // Of this process. E303 without the library; that is not kept, so that it can be mended.
  static absl::StatusOr<const CublasLt*> Get();
  // OK, or E309 with the library's text.
  absl::Status Check(cublasStatus_t code, absl::string_view function) const;
  // The device's, which is the current one.
  absl::StatusOr<std::shared_ptr<PooledHandle>> Handle(HandlerDevice& device) const;

  // Owners; null without the thing.
  template <typename T>
  using Owner = std::unique_ptr<T, cublasStatus_t (*)(T*)>;
  using Operation = Owner<cublasLtMatmulDescOpaque_t>;
  using Layout = Owner<cublasLtMatrixLayoutOpaque_t>;
  using Preference = Owner<cublasLtMatmulPreferenceOpaque_t>;
  absl::StatusOr<Operation> NewOperation(cublasComputeType_t compute, cudaDataType_t scale) const;
  absl::StatusOr<Preference> NewPreference() const;
  // Matrices of this type in columns, `ld` elements apart, and `batch` of them one behind
  // the other.
  absl::StatusOr<Layout> NewLayout(cudaDataType_t type, int64_t rows, int64_t columns, int64_t ld,
                                   int32_t batch, int64_t batch_stride) const;
};

}  // namespace shardcall::inline internal

#endif  // SHARDCALL_KERNELS_CUDA_CUBLAS_LT_H_
