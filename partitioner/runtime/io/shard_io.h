// SPDX-License-Identifier: Apache-2.0
// Shards global tensors for devices, and joins shards. Under a LocalState with tiles T, the device
// at shard i of a dimension holds [iT, (i+1)T) of it, as far as it exists; the rest of its buffer
// is padding. Example: 10 elements over 4 shards with T = 3 are 3, 3, 3, and 1 with two of
// padding.
#ifndef SHARDCALL_PARTITIONER_RUNTIME_IO_SHARD_IO_H_
#define SHARDCALL_PARTITIONER_RUNTIME_IO_SHARD_IO_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "shardcall/partitioner/runtime/tensor.h"
#include "shardcall/sharding/sharding.h"

namespace shardcall {
inline namespace internal {

// The fill of padding, and of the arrays on devices that a maximal sharding excludes. Poison is
// NaN, large integers and true, so that a program that lacks a mask gives wrong results.
enum class PadFill : uint8_t { kZero, kPoison };

// The buffer of one device; that of a replicated tensor is shared. With partial axes the device at
// coordinate 0 gets the value and the others the identity.
absl::StatusOr<Tensor> ShardForDevice(const Tensor& global, const LocalState& state, int64_t device,
                                      PadFill fill);

// A number that devices have in common if ShardForDevice gives them the same buffer of an array of
// these dimensions. E320 as there.
absl::StatusOr<int64_t> BufferOfDevice(const LocalState& state, absl::Span<const int64_t> dims,
                                       int64_t device);

// All devices' arguments: element [d][k] is the shard of globals[k] on device d. Replicas share a
// buffer.
absl::StatusOr<std::vector<std::vector<Tensor>>> ShardForDevices(
    absl::Span<const Tensor> globals, absl::Span<const LocalState* const> states,
    int64_t num_devices, PadFill fill);

struct UnshardOptions {
  // E321 if replicas of a shard differ in a valid element.
  bool check_replicas = false;
};

// locals[d] is the buffer of device d. Every shard is taken from the first device that has it;
// partial values are folded in group order.
absl::StatusOr<Tensor> Unshard(absl::Span<const Tensor> locals, const LocalState& state,
                               absl::Span<const int64_t> global_dims,
                               const UnshardOptions& options = {});

// Whether every device holds the same elements of an array of these dimensions under both, at the
// same places of its buffer, without partial values: then a result of one program can be an
// argument of another. The states may have different meshes and contexts.
bool SameParts(const LocalState& a, const LocalState& b, absl::Span<const int64_t> global_dims,
               int64_t num_devices);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_RUNTIME_IO_SHARD_IO_H_
