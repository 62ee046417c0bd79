// SPDX-License-Identifier: Apache-2.0
// What a rank is about to run, for the ranks to compare (collectives/program_check.h).
#ifndef SHARDCALL_PARTITIONER_API_RANK_IDENTITY_H_
#define SHARDCALL_PARTITIONER_API_RANK_IDENTITY_H_

#include <vector>

#include "absl/status/statusor.h"
#include "shardcall/collectives/program_check.h"
#include "shardcall/partitioner/api/run.h"

namespace shardcall {
inline namespace internal {

// The program, the libraries of the handlers that it calls, and the bytes of the inputs: all of
// them, or with `own_shards_only` those of the device's shards. Handlers that are no library's,
// such as a callback of this process, are compared by where they are from. E320 where an input
// cannot be cut.
absl::StatusOr<ProgramIdentity> IdentityOfRank(const PartitionedProgram& program,
                                               const DeviceProgram& lowered,
                                               const std::vector<Tensor>& inputs, int64_t device,
                                               const RunOptions& options);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_API_RANK_IDENTITY_H_
