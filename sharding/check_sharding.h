// SPDX-License-Identifier: Apache-2.0
#ifndef SHARDCALL_SHARDING_CHECK_SHARDING_H_
#define SHARDCALL_SHARDING_CHECK_SHARDING_H_

#include "absl/status/status.h"
#include "shardcall/sharding/sharding.h"

namespace shardcall {
inline namespace internal {

// E162 for an axis part that occurs twice or does not fit an axis of the mesh, for a device that
// the mesh does not have, for a rank that no array has, and for a sharding without a mesh.
absl::Status CheckSharding(const ShardingBuilder& sharding);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_SHARDING_CHECK_SHARDING_H_
