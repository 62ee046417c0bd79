// SPDX-License-Identifier: Apache-2.0
// Shardings in the forms in which they are written, and constraints as shardings. Conversions are
// exact or fail: E164 for a sharding that the target form cannot express. The other way goes
// through the base meshes of a module (mesh_set.h).
#ifndef SHARDCALL_SHARDING_CONVERT_CONVERT_H_
#define SHARDCALL_SHARDING_CONVERT_CONVERT_H_

#include "absl/status/statusor.h"
#include "shardcall/sharding/context.h"
#include "shardcall/sharding/hlo_sharding.h"
#include "shardcall/sharding/mesh.h"
#include "shardcall/sharding/named_sharding.h"
#include "shardcall/sharding/sharding.h"

namespace shardcall {
inline namespace internal {

// A fully specified sharding from the constraint that a program gives; open dims become closed.
// Requires !constraint.unknown.
const Sharding* ToSharding(Context& context, const ShardingConstraint& constraint);

// V2 text form, or V1 where the devices have no iota form. E164 for a partial op other than sum
// and for open dims.
absl::StatusOr<HloSharding> ToHloSharding(const Sharding& sharding);
absl::StatusOr<HloSharding> ToHloSharding(const ShardingConstraint& constraint);

// By axis names: with `@mesh`, or with the mesh inline, which V3 text needs. Axes without a name
// are called x0, x1, ..; E164 for partial ops other than sum, max and min, and for unknown
// shardings.
absl::StatusOr<NamedSharding> ToNamedSharding(const Sharding& sharding, bool inline_mesh,
                                              bool open = false);
absl::StatusOr<NamedSharding> ToNamedSharding(const ShardingConstraint& constraint,
                                              bool inline_mesh);
// V3: {mesh['data'=4], [..]}, {maximal_mesh[device_id=0]}.
absl::StatusOr<HloSharding> ToHloShardingV3(const Sharding& sharding);
absl::StatusOr<HloSharding> ToHloShardingV3(const ShardingConstraint& constraint);

// The form that XLA prints: tiles, or V3 for a sharding that tiles cannot express.
absl::StatusOr<HloSharding> ToHloShardingOrV3(const Sharding& sharding);
absl::StatusOr<HloSharding> ToHloShardingOrV3(const ShardingConstraint& constraint);

// The mesh that is printed for a base mesh: with the user's axis names, or x0, x1, ..
Mesh DeclaredMesh(const BaseMesh& base);
// The axes that the program names, or else the base axes as x0, x1, ..; each with its parts.
std::vector<BaseMesh::NamedAxis> AxesByName(const BaseMesh& base);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_SHARDING_CONVERT_CONVERT_H_
