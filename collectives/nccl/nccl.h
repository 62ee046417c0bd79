// SPDX-License-Identifier: Apache-2.0
// The public header of the NCCL backend: one GPU per process.
//
// Each buffer may be host memory, which is staged through the device, or device memory, which is
// not; in and out may differ. Sums of f32 and wider types are NCCL's, whose order is not that of
// the group, so they agree bitwise with the other backends only where they are exact. Types and
// reductions that NCCL lacks are all-gathered by it and folded on the host, in group order.
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
  // How ranks connect: over another communicator, which outlives this one, or over TCP at rank 0's
  // "host:port". With neither this is the only rank.
  Communicator* over = nullptr;
  std::string address;
  int rank = 0;  // with an address
  int size = 1;
  int device = -1;  // CUDA ordinal; -1: the rank modulo the number of devices
  // Members compare their calls before any data is moved. Otherwise they compare them only after
  // the deadline has passed.
  bool check_every_call = false;
  // Staging buffers are registered with NCCL, which then sends directly from them if the transport
  // can.
  bool register_buffers = true;
};

// OK if there is a CUDA device, else E303 (kUnavailable); also E303 if shardcall was built without
// CUDA.
absl::Status CheckNcclDevice();

// The communicator of this process. Every rank calls it. E303 as above; E301 if a rank does not
// connect in time; E309 where CUDA or NCCL fail.
absl::StatusOr<std::unique_ptr<Communicator>> ConnectNccl(absl::Duration deadline,
                                                          const NcclOptions& options = {});

}  // namespace shardcall

#endif  // SHARDCALL_COLLECTIVES_NCCL_NCCL_H_
