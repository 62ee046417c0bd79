// SPDX-License-Identifier: Apache-2.0
// Views of a communicator: one of a subgroup, and all-to-all over separate buffers.
#ifndef SHARDCALL_COLLECTIVES_SPLIT_H_
#define SHARDCALL_COLLECTIVES_SPLIT_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "shardcall/collectives/communicator.h"
#include "shardcall/sharding/base/public.h"

namespace shardcall SHARDCALL_PUBLIC {

// A communicator whose ranks are the positions in `group`, which contains the caller. Making it
// needs no communication; diagnostics use the ranks of `parent`, which outlives it. Abort aborts
// the parent. E306 for an invalid group.
//   Split(world, {5, 1, 3}) at rank 3 has size() 3 and rank() 2.
absl::StatusOr<std::unique_ptr<Communicator>> Split(Communicator& parent,
                                                    Communicator::Group group);

// All-to-all of `bytes` with each member: in[j] is sent to member j, out[i] is received from
// member i. An out may be one of the ins, else buffers do not overlap.
absl::Status AllToAllBuffers(Communicator& communicator, Communicator::Group group,
                             absl::Span<const void* const> in, absl::Span<void* const> out,
                             int64_t bytes, CollectiveTag tag);

}  // namespace shardcall

#endif  // SHARDCALL_COLLECTIVES_SPLIT_H_
