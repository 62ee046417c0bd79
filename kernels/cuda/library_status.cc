// SPDX-License-Identifier: Apache-2.0
#include "shardcall/kernels/cuda/library_status.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace {

constexpr char kSeeDevice[] = "See the driver and the device: nvidia-smi";

}  // namespace

absl::Status LibraryStatus(absl::string_view library, absl::string_view function,
                           absl::string_view text, int code, bool out_of_memory,
                           absl::string_view fix) {
  return ToStatus(
      {.code = "E309",
       .message = absl::StrCat(library, " failed in ", function, ": ", text, " (", code, ")"),
       .fix = std::string(fix)},
      out_of_memory ? absl::StatusCode::kResourceExhausted : absl::StatusCode::kInternal);
}

absl::Status RuntimeStatus(cudaError_t code, absl::string_view function) {
  if (code == cudaSuccess) return absl::OkStatus();
  cudaGetLastError();
  return LibraryStatus("CUDA", function, cudaGetErrorString(code), code,
                       code == cudaErrorMemoryAllocation, kSeeDevice);
}

absl::Status DeviceStatus(const absl::Status& status) {
  if (status.ok() || !DiagnosticCode(status).empty()) return status;
  return ToStatus({.code = "E309", .message = std::string(status.message()), .fix = kSeeDevice},
                  status.code());
}

}  // namespace internal
}  // namespace shardcall
