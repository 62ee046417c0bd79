// SPDX-License-Identifier: Apache-2.0
// cuSPARSE, loaded when it is first needed: its functions by their names.
#ifndef SHARDCALL_KERNELS_CUDA_CUSPARSE_LIBRARY_H_
#define SHARDCALL_KERNELS_CUDA_CUSPARSE_LIBRARY_H_

#include <cusparse.h>

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "shardcall/kernels/cuda/handle_pool.h"

namespace shardcall::inline internal {

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

  // Of this process. E303 without the library; that is not kept, so that it can be mended.
  static absl::StatusOr<const Cusparse*> Get();
  // OK, or E309 with the library's text.
  absl::Status Check(cusparseStatus_t code, absl::string_view function) const;
  // The device's, which is the current one. Its mutex is to be held during calls.
  absl::StatusOr<std::shared_ptr<PooledHandle>> Handle(HandlerDevice& device) const;

  // Owners; null without the thing.
  using Sparse =
      std::unique_ptr<const cusparseSpMatDescr, cusparseStatus_t (*)(cusparseConstSpMatDescr_t)>;
  using Dense =
      std::unique_ptr<const cusparseDnMatDescr, cusparseStatus_t (*)(cusparseConstDnMatDescr_t)>;
};

}  // namespace shardcall::inline internal

#endif  // SHARDCALL_KERNELS_CUDA_CUSPARSE_LIBRARY_H_
