// SPDX-License-Identifier: Apache-2.0
// The entry of the NCCL backend.
#ifndef SHARDCALL_COLLECTIVES_NCCL_H_
#define SHARDCALL_COLLECTIVES_NCCL_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "collectives/communicator.h"

namespace shardcall {

// The communicator of this process over NCCL, whose buffers are device
// pointers. kUnavailable with E303 where there is no CUDA device, or where
// shardcall was built without NCCL.
absl::StatusOr<std::unique_ptr<Communicator>> ConnectNccl(absl::Duration deadline);

}  // namespace shardcall

#endif  // SHARDCALL_COLLECTIVES_NCCL_H_
