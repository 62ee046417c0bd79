// SPDX-License-Identifier: Apache-2.0
#include "shardcall/kernels/cuda/cusparse_library.h"

#include <mutex>
#include <string>

#include "absl/strings/str_cat.h"
#include "shardcall/kernels/cuda/library_status.h"
#include "shardcall/kernels/cuda/shared_library.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace {

absl::StatusOr<const Cusparse*> Load() {
  const std::string name = absl::StrCat("libcusparse.so.", CUSPARSE_VER_MAJOR);
  SHARDCALL_ASSIGN_OR_RETURN(void* const library, OpenSharedLibrary(name));
  auto loaded = std::make_unique<Cusparse>();
  absl::Status status;
  const auto find = [&](const char* function, auto*& place) {
    status.Update(FindFunction(library, name, function, &place));
  };
  find("cusparseCreate", loaded->cusparseCreate);
  find("cusparseCreateConstCsr", loaded->cusparseCreateConstCsr);
  find("cusparseCreateConstDnMat", loaded->cusparseCreateConstDnMat);
  find("cusparseCreateDnMat", loaded->cusparseCreateDnMat);
  find("cusparseDestroyDnMat", loaded->cusparseDestroyDnMat);
  find("cusparseDestroySpMat", loaded->cusparseDestroySpMat);
  find("cusparseGetErrorString", loaded->cusparseGetErrorString);
  find("cusparseSetStream", loaded->cusparseSetStream);
  find("cusparseSpMM", loaded->cusparseSpMM);
  find("cusparseSpMM_bufferSize", loaded->cusparseSpMM_bufferSize);
  SHARDCALL_RETURN_IF_ERROR(status);
  return loaded.release();  // kept for the life of the process
}

}  // namespace

absl::StatusOr<const Cusparse*> Cusparse::Get() {
  static std::mutex mutex;
  static const Cusparse* loaded = nullptr;
  const std::lock_guard<std::mutex> lock(mutex);
  if (loaded == nullptr) {
    SHARDCALL_ASSIGN_OR_RETURN(loaded, Load());
  }
  return loaded;
}

absl::Status Cusparse::Check(cusparseStatus_t code, absl::string_view function) const {
  if (code == CUSPARSE_STATUS_SUCCESS) return absl::OkStatus();
  return LibraryStatus(
      "cuSPARSE", function, cusparseGetErrorString(code), code,
      code == CUSPARSE_STATUS_ALLOC_FAILED || code == CUSPARSE_STATUS_INSUFFICIENT_RESOURCES,
      "Run again with CUSPARSE_LOG_LEVEL=5, which says more");
}

absl::StatusOr<std::shared_ptr<PooledHandle>> Cusparse::Handle(HandlerDevice& device) const {
  static HandlePool* const pool = new HandlePool;
  return pool->Of(device, [this]() -> absl::StatusOr<void*> {
    cusparseHandle_t made = nullptr;
    SHARDCALL_RETURN_IF_ERROR(Check(cusparseCreate(&made), "cusparseCreate"));
    return static_cast<void*>(made);
  });
}

}  // namespace internal
}  // namespace shardcall
