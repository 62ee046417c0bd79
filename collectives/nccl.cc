// SPDX-License-Identifier: Apache-2.0
// The NCCL backend of a build with the CUDA toolkit: it looks for a device and
// says what it found. Collectives on device memory are not in this version.
#include "collectives/nccl.h"

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "sharding/status.h"

namespace shardcall {
namespace {

constexpr char kFix[] = "Use --backend=inprocess or --backend=mpi";

std::string VersionText(int version, int minor_unit) {
  return absl::StrFormat("%d.%d", version / 1000, version % 1000 / minor_unit);
}

std::string NcclVersionText() {
  return absl::StrFormat("%d.%d.%d", NCCL_MAJOR, NCCL_MINOR, NCCL_PATCH);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Communicator>> ConnectNccl(absl::Duration) {
  // Without a driver the call fails and leaves the count as it was.
  int devices = 0;
  const cudaError_t error = cudaGetDeviceCount(&devices);
  int driver = 0;
  if (cudaDriverGetVersion(&driver) != cudaSuccess) driver = 0;
  const std::string driver_text =
      driver == 0 ? "no driver" : absl::StrCat("driver of CUDA ", VersionText(driver, 10));
  if (error != cudaSuccess || devices == 0) {
    return ToStatus(
        {.code = "E303",
         .message = "there is no CUDA device",
         .expected = "a GPU with a driver of CUDA " + VersionText(CUDART_VERSION, 10) + " or newer",
         .found = absl::StrCat(driver_text, "; cudaGetDeviceCount gives ",
                               static_cast<int>(error), " (", cudaGetErrorString(error), ")"),
         .fix = kFix},
        absl::StatusCode::kUnavailable);
  }
  return ToStatus({.code = "E303",
                   .message = "collectives over NCCL are not in this version of shardcall",
                   .found = absl::StrCat(devices, devices == 1 ? " CUDA device, " : " CUDA devices, ",
                                         driver_text, ", NCCL ", NcclVersionText()),
                   .fix = kFix},
                  absl::StatusCode::kUnavailable);
}

}  // namespace shardcall
