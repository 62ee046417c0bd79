// SPDX-License-Identifier: Apache-2.0
// Replaces the MPI backend where shardcall is built without it.
#include "shardcall/collectives/mpi/mpi.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {

absl::StatusOr<std::unique_ptr<Communicator>> ConnectMpi(absl::Duration, const MpiOptions&) {
  return ToStatus({.code = "E302",
                   .message = "shardcall was built without MPI",
                   .fix = "Install Open MPI and build again, or use --backend=inprocess"},
                  absl::StatusCode::kUnavailable);
}

}  // namespace shardcall
