// SPDX-License-Identifier: Apache-2.0
// What the kernels of nccl_allreduce have in common.
#ifndef SHARDCALL_KERNELS_HOST_ALL_REDUCE_H_
#define SHARDCALL_KERNELS_HOST_ALL_REDUCE_H_

#include <vector>

#include "absl/status/statusor.h"
#include "shardcall/collectives/communicator.h"
#include "shardcall/kernels/host/arguments.h"

namespace shardcall::inline internal {

struct AllReduceCall {
  ReduceKind kind = ReduceKind::kSum;
  // That of this device. Empty for a program of many devices that is run on one: its
  // groups name others, which are not there, and y = x.
  std::vector<int> group;
};
// Of a call with its counts, types, shapes, attributes and communicator.
absl::StatusOr<AllReduceCall> CheckAllReduce(const HandlerContext& context,
                                             const CallArguments& args);

}  // namespace shardcall::inline internal

#endif  // SHARDCALL_KERNELS_HOST_ALL_REDUCE_H_
