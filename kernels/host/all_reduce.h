// SPDX-License-Identifier: Apache-2.0
// Common to the kernels of nccl_allreduce.
#ifndef SHARDCALL_KERNELS_HOST_ALL_REDUCE_H_
#define SHARDCALL_KERNELS_HOST_ALL_REDUCE_H_

#include <vector>

#include "absl/status/statusor.h"
#include "shardcall/collectives/communicator.h"
#include "shardcall/kernels/host/arguments.h"

namespace shardcall {
inline namespace internal {

struct AllReduceCall {
  ReduceKind kind = ReduceKind::kSum;
  // The group of this device. Empty if a program of many devices runs on one: the other devices of
  // its groups do not exist, and y = x.
  std::vector<int> group;
};
// Checks counts, types, shapes, attributes and the communicator of a call.
absl::StatusOr<AllReduceCall> CheckAllReduce(const HandlerContext& context,
                                             const CallArguments& args);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_KERNELS_HOST_ALL_REDUCE_H_
