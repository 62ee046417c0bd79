// SPDX-License-Identifier: Apache-2.0
// Replaces the NCCL backend where shardcall is built without it.
#include "shardcall/collectives/nccl/nccl.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {

absl::Status CheckNcclDevice() {
  return ToStatus({.code = "E303",
                   .message = "the nccl backend is not in this build of shardcall",
                   .fix = "Use --backend=inprocess or --backend=mpi"},
                  absl::StatusCode::kUnavailable);
}

absl::StatusOr<std::unique_ptr<Communicator>> ConnectNccl(absl::Duration, const NcclOptions&) {
  return CheckNcclDevice();
}

}  // namespace shardcall
