// SPDX-License-Identifier: Apache-2.0
#include "shardcall/kernels/cuda/cublas_lt.h"

#include <mutex>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "shardcall/kernels/cuda/library_status.h"
#include "shardcall/kernels/cuda/shared_library.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace {

absl::StatusOr<const CublasLt*> Load() {
  const std::string name = absl::StrCat("libcublasLt.so.", CUBLAS_VER_MAJOR);
  SHARDCALL_ASSIGN_OR_RETURN(void* const library, OpenSharedLibrary(name));
  auto loaded = std::make_unique<CublasLt>();
  absl::Status status;
  const auto find = [&](const char* function, auto*& place) {
    status.Update(FindFunction(library, name, function, &place));
  };
  find("cublasLtCreate", loaded->cublasLtCreate);
  find("cublasLtGetStatusString", loaded->cublasLtGetStatusString);
  find("cublasLtMatmul", loaded->cublasLtMatmul);
  find("cublasLtMatmulAlgoGetHeuristic", loaded->cublasLtMatmulAlgoGetHeuristic);
  find("cublasLtMatmulDescCreate", loaded->cublasLtMatmulDescCreate);
  find("cublasLtMatmulDescDestroy", loaded->cublasLtMatmulDescDestroy);
  find("cublasLtMatmulDescSetAttribute", loaded->cublasLtMatmulDescSetAttribute);
  find("cublasLtMatmulPreferenceCreate", loaded->cublasLtMatmulPreferenceCreate);
  find("cublasLtMatmulPreferenceDestroy", loaded->cublasLtMatmulPreferenceDestroy);
  find("cublasLtMatmulPreferenceSetAttribute", loaded->cublasLtMatmulPreferenceSetAttribute);
  find("cublasLtMatrixLayoutCreate", loaded->cublasLtMatrixLayoutCreate);
  find("cublasLtMatrixLayoutDestroy", loaded->cublasLtMatrixLayoutDestroy);
  find("cublasLtMatrixLayoutSetAttribute", loaded->cublasLtMatrixLayoutSetAttribute);
  SHARDCALL_RETURN_IF_ERROR(status);
  return loaded.release();  // kept for the life of the process
}

}  // namespace

absl::StatusOr<const CublasLt*> CublasLt::Get() {
  static std::mutex mutex;
  static const CublasLt* loaded = nullptr;
  const std::lock_guard<std::mutex> lock(mutex);
  if (loaded == nullptr) {
    SHARDCALL_ASSIGN_OR_RETURN(loaded, Load());
  }
  return loaded;
}

absl::Status CublasLt::Check(cublasStatus_t code, absl::string_view function) const {
  if (code == CUBLAS_STATUS_SUCCESS) return absl::OkStatus();
  return LibraryStatus("cuBLASLt", function, cublasLtGetStatusString(code), code,
                       code == CUBLAS_STATUS_ALLOC_FAILED,
                       "Run again with CUBLASLT_LOG_LEVEL=2, which says more");
}

absl::StatusOr<std::shared_ptr<PooledHandle>> CublasLt::Handle(HandlerDevice& device) const {
  static HandlePool* const pool = new HandlePool;
  return pool->Of(device, [this]() -> absl::StatusOr<void*> {
    cublasLtHandle_t made = nullptr;
    SHARDCALL_RETURN_IF_ERROR(Check(cublasLtCreate(&made), "cublasLtCreate"));
    return static_cast<void*>(made);
  });
}

absl::StatusOr<CublasLt::Operation> CublasLt::NewOperation(cublasComputeType_t compute,
                                                           cudaDataType_t scale) const {
  cublasLtMatmulDesc_t made = nullptr;
  SHARDCALL_RETURN_IF_ERROR(
      Check(cublasLtMatmulDescCreate(&made, compute, scale), "cublasLtMatmulDescCreate"));
  return Operation(made, cublasLtMatmulDescDestroy);
}

absl::StatusOr<CublasLt::Preference> CublasLt::NewPreference() const {
  cublasLtMatmulPreference_t made = nullptr;
  SHARDCALL_RETURN_IF_ERROR(
      Check(cublasLtMatmulPreferenceCreate(&made), "cublasLtMatmulPreferenceCreate"));
  return Preference(made, cublasLtMatmulPreferenceDestroy);
}

absl::StatusOr<CublasLt::Layout> CublasLt::NewLayout(cudaDataType_t type, int64_t rows,
                                                     int64_t columns, int64_t ld, int32_t batch,
                                                     int64_t batch_stride) const {
  cublasLtMatrixLayout_t made = nullptr;
  SHARDCALL_RETURN_IF_ERROR(Check(cublasLtMatrixLayoutCreate(&made, type, rows, columns, ld),
                                  "cublasLtMatrixLayoutCreate"));
  Layout layout(made, cublasLtMatrixLayoutDestroy);
  if (batch == 1) return layout;
  SHARDCALL_RETURN_IF_ERROR(
      Check(cublasLtMatrixLayoutSetAttribute(made, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch,
                                             sizeof(batch)),
            "cublasLtMatrixLayoutSetAttribute"));
  SHARDCALL_RETURN_IF_ERROR(
      Check(cublasLtMatrixLayoutSetAttribute(made, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                                             &batch_stride, sizeof(batch_stride)),
            "cublasLtMatrixLayoutSetAttribute"));
  return layout;
}

}  // namespace internal
}  // namespace shardcall
