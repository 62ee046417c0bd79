// SPDX-License-Identifier: Apache-2.0
// What a backend does not run of the collectives of a per-device program.
#ifndef SHARDCALL_PARTITIONER_SPMD_LOCALIZE_BACKEND_LIMITS_H_
#define SHARDCALL_PARTITIONER_SPMD_LOCALIZE_BACKEND_LIMITS_H_

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "shardcall/partitioner/ir/module.h"
#include "shardcall/sharding/backend.h"

namespace shardcall {
inline namespace internal {

// Whether `backend` can run collectives over `groups` of `devices` devices.
bool RunsOver(const BackendLimits& backend, const ReplicaGroups& groups, int64_t devices);

// All devices as one group.
ReplicaGroups AllDevices(Arena& arena, int64_t devices);

// The groups of devices that a collective of a program of one replica meets in, if they are of one
// size: iotas, or lists. Nullopt for one among replicas, which no device shares.
std::optional<ReplicaGroups> DeviceGroupsOf(const Module& module, const Instruction& collective,
                                            int64_t devices);

// E214 for the first collective that the backend does not run.
absl::Status CheckCollectives(const Module& module, const BackendLimits& backend, int64_t devices);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_SPMD_LOCALIZE_BACKEND_LIMITS_H_
