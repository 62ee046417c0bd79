// SPDX-License-Identifier: Apache-2.0
// The functions of nccl.h in a build with the CUDA toolkit.
#include "shardcall/collectives/nccl/nccl.h"

#include <cuda_runtime_api.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "shardcall/collectives/nccl/nccl_communicator.h"
#include "shardcall/collectives/side_channel.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
namespace {

constexpr char kFix[] = "Use --backend=inprocess or --backend=mpi";

std::string VersionText(int version, int minor_unit) {
  return absl::StrFormat("%d.%d", version / 1000, version % 1000 / minor_unit);
}

// The side channel of a single rank.
class Alone final : public SideChannel {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  absl::StatusOr<std::vector<std::string>> Gather(absl::Span<const int>, const std::string& mine,
                                                  absl::string_view) override {
    return std::vector<std::string>{mine};
  }
};

// Without a driver cudaGetDeviceCount fails and does not set the count.
absl::StatusOr<int> CountDevices() {
  int devices = 0;
  const cudaError_t error = cudaGetDeviceCount(&devices);
  if (error == cudaSuccess && devices > 0) return devices;
  int driver = 0;
  if (cudaDriverGetVersion(&driver) != cudaSuccess) driver = 0;
  const std::string driver_text =
      driver == 0 ? "no driver" : absl::StrCat("driver of CUDA ", VersionText(driver, 10));
  return ToStatus(
      {.code = "E303",
       .message = "there is no CUDA device",
       .expected = "a GPU with a driver of CUDA " + VersionText(CUDART_VERSION, 10) + " or newer",
       .found = absl::StrCat(driver_text, "; cudaGetDeviceCount gives ", static_cast<int>(error),
                             " (", cudaGetErrorString(error), ")"),
       .fix = kFix},
      absl::StatusCode::kUnavailable);
}

}  // namespace

absl::Status CheckNcclDevice() { return CountDevices().status(); }

absl::StatusOr<std::unique_ptr<Communicator>> ConnectNccl(absl::Duration deadline,
                                                          const NcclOptions& options) {
  SHARDCALL_ASSIGN_OR_RETURN(const int devices, CountDevices());
  std::unique_ptr<SideChannel> side;
  if (options.over != nullptr) {
    side = SideChannelOver(*options.over);
  } else if (!options.address.empty()) {
    SHARDCALL_ASSIGN_OR_RETURN(
        side, SideChannelOverTcp(options.address, options.rank, options.size, deadline));
  } else {
    side = std::make_unique<Alone>();
  }
  const int device = options.device >= 0 ? options.device : side->rank() % devices;
  return NcclCommunicator::Create(std::move(side), device, deadline, options.check_every_call,
                                  options.register_buffers);
}

}  // namespace shardcall
