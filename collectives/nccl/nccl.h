// SPDX-License-Identifier: Apache-2.0
// The entry of the NCCL backend: one GPU per process.
//
// Buffers may be host memory, which is staged through the device, or device
// pointers, which are not; in and out each for itself. Sums of f32 and wider are
// NCCL's, whose order is not the group's, so they agree bitwise with the other
// backends where they are exact; what NCCL has no type or reduction for is
// gathered by it and folded on the host, in group order.
#ifndef SHARDCALL_COLLECTIVES_NCCL_NCCL_H_
#define SHARDCALL_COLLECTIVES_NCCL_NCCL_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "shardcall/collectives/communicator.h"
#include "shardcall/sharding/base/public.h"

namespace shardcall SHARDCALL_PUBLIC {

struct NcclOptions {
  // How ranks find each other: over another communicator, which outlives this
  // one, or over TCP at rank 0's "host:port". Neither: this is the only rank.
  Communicator* over = nullptr;
  std::string address;
  int rank = 0;  // with an address
  int size = 1;
  int device = -1;  // CUDA ordinal; -1: the rank modulo the number of devices
  // Members compare what they call before any data move. Without it they do so
  // when the deadline has passed.
  bool check_every_call = false;
  // Buffers of staged calls are registered with NCCL, which then sends from them
  // where the transport can.
  bool register_buffers = true;
};

// OK if there is a CUDA device, else E303 (kUnavailable), as where shardcall was
// built without CUDA.
absl::Status CheckNcclDevice();

// The communicator of this process. Every rank calls it. E303 as above; E301 if
// not all ranks come in time; E309 where CUDA or NCCL fail.
absl::StatusOr<std::unique_ptr<Communicator>> ConnectNccl(absl::Duration deadline,
                                                          const NcclOptions& options = {});

}  // namespace shardcall

#endif  // SHARDCALL_COLLECTIVES_NCCL_NCCL_H_
