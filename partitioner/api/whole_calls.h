// SPDX-License-Identifier: Apache-2.0
// Custom calls that have no handler, but whose target has a partitioner, which makes a program of
// them, such as a custom_partitioning of JAX.
#ifndef SHARDCALL_PARTITIONER_API_WHOLE_CALLS_H_
#define SHARDCALL_PARTITIONER_API_WHOLE_CALLS_H_

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "shardcall/kernels/ffi/handler.h"
#include "shardcall/partitioner/api/partition.h"
#include "shardcall/partitioner/ir/module.h"

namespace shardcall {
inline namespace internal {

// The program for one device in which each such call is what its partitioner makes of it whole.
// Nothing if there are none, or if the program has manual regions, which run over their own devices
// only. Errors: those of Partition.
absl::StatusOr<absl::optional<Module>> WithWholeCalls(const Module& module,
                                                      const PartitionOptions& options,
                                                      const HandlerRegistry* handlers);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_API_WHOLE_CALLS_H_
