// SPDX-License-Identifier: Apache-2.0
// JAX from 0.12 on writes an asynchronous collective as two custom calls, which have the shape of
// its result, and says in JSON what it does:
//
//   s = f32[4,8] custom-call(x), custom_call_target="all-gather-start",
//       frontend_attributes={async_collective_config={"all_gather_dimension": 1,
//       "replica_groups": [[0, 1], [2, 3]], "use_global_device_ids": true, "channel_id": 1}}
//   y = f32[4,8] custom-call(s), custom_call_target="all-gather-done"
//
// In a module it is the pair of ops that HLO has for it, which every layer knows.
#ifndef SHARDCALL_PARTITIONER_IR_BUILD_STARTED_CALLS_H_
#define SHARDCALL_PARTITIONER_IR_BUILD_STARTED_CALLS_H_

#include "absl/status/statusor.h"
#include "shardcall/partitioner/ir/module.h"

namespace shardcall {
inline namespace internal {

// The module with ops in the place of such calls. A start that something else uses than its done
// alone, as where the value goes through a barrier or a loop, becomes the synchronous op, and its
// done is its value. Errors E165: JSON of another form, and keys that are not known.
absl::StatusOr<Module> WithStartedOps(Module module);

// The module with such calls in the place of what is started of these collectives, for an XLA that
// reads them. Other asynchronous ops, and those of several arrays, stay as they are.
Module WithStartedCalls(Module module);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_BUILD_STARTED_CALLS_H_
