// SPDX-License-Identifier: Apache-2.0
// cuSPARSE, loaded at first use: its functions by name.
#ifndef SHARDCALL_KERNELS_CUDA_CUSPARSE_LIBRARY_H_
#define SHARDCALL_KERNELS_CUDA_CUSPARSE_LIBRARY_H_

#include <cusparse.h>

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "shardcall/kernels/cuda/handle_pool.h"

namespace shardcall {
inline namespace internal {

struct Cusparse {
  decltype(&::cusparseCreate) cusparseCreate;
  decltype(&::cusparseCreateConstCsr) cusparseCreateConstCsr;
  decltype(&::cusparseCreateConstDnMat) cusparseCreateConstDnMat;
  decltype(&::cusparseCreateDnMat) cusparseCreateDnMat;
  decltype(&::cusparseDestroyDnMat) cusparseDestroyDnMat;
  decltype(&::cusparseDestroySpMat) cusparseDestroySpMat;
  decltype(&::cusparseGetErrorString) cusparseGetErrorString;
  decltype(&::cusparseSetStream) cusparseSetStream;
  decltype(&::cusparseSpMM) cusparseSpMM;
  decltype(&::cusparseSpMM_bufferSize) cusparseSpMM_bufferSize;

  // The process's instance. E303 if the library is missing; that is not cached, so that a later
  // call can succeed.
  static absl::StatusOr<const Cusparse*> Get();
  // OK, or E309 with the library's text.
  absl::Status Check(cusparseStatus_t code, absl::string_view function) const;
  // A handle for the device, which must be the current one. Hold its mutex during calls.
  absl::StatusOr<std::shared_ptr<PooledHandle>> Handle(HandlerDevice& device) const;

  // Owners of library objects; may be null.
  using Sparse =
      std::unique_ptr<const cusparseSpMatDescr, cusparseStatus_t (*)(cusparseConstSpMatDescr_t)>;
  using Dense =
      std::unique_ptr<const cusparseDnMatDescr, cusparseStatus_t (*)(cusparseConstDnMatDescr_t)>;
};

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_KERNELS_CUDA_CUSPARSE_LIBRARY_H_
