// SPDX-License-Identifier: Apache-2.0
// The base meshes of a module, onto which its shardings are converted from their text forms. A
// MeshCollector sees every mesh and tiling of a module and makes one base mesh per device order,
// the common refinement of all that use it: [2,4]<=[8] and [4,2]<=[8] give one base mesh with axes
// 2,2,2. A tiling given by an iota expression uses the identity order if its tiles divide the iota
// dimensions; explicit device lists, and tiles that do not divide, have a device order of their
// own. A list that another one transposed gives has the order of that one. Meshes whose cuts
// contradict each other (2x3 against 3x2) get separate base meshes.
//
// A tiling over some devices is converted as the one over all in which the others have copies.
// Conversions are exact or fail: E162 for axes, E163 for a mesh, rank or device that does not fit
// the program.
#ifndef SHARDCALL_SHARDING_CONVERT_MESH_SET_H_
#define SHARDCALL_SHARDING_CONVERT_MESH_SET_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "shardcall/sharding/context.h"
#include "shardcall/sharding/hlo_sharding.h"
#include "shardcall/sharding/named_sharding.h"
#include "shardcall/sharding/sharding.h"
#include "shardcall/sharding/tile_runs.h"

namespace shardcall {
inline namespace internal {

// The base meshes of a module, and conversions onto them. Holds pointers into
// the Context that Finish was given.
class MeshSet {
 public:
  // The mesh of shardings that name none: the base mesh of the first named mesh, else of the first
  // tiling, else one axis over all devices.
  const BaseMesh* main() const { return bases_[0]; }
  int64_t num_devices() const { return bases_[0]->num_devices(); }
  absl::Span<const BaseMesh* const> bases() const { return bases_; }
  const Mesh* FindMesh(absl::string_view name) const;  // null if there is none

  // The parts of a base mesh's axes that each axis of a mesh consists of.
  struct Placed {
    const BaseMesh* base = nullptr;
    std::vector<std::vector<Run>> axes;  // per axis of the mesh, major to minor
  };
  absl::StatusOr<Placed> Place(const Mesh& mesh) const;

  // A sharding of a tensor of that rank. Not for tuples.
  absl::StatusOr<ShardingConstraint> FromHlo(const HloSharding& sharding, int rank) const;
  absl::StatusOr<ShardingConstraint> FromNamed(const NamedSharding& sharding, int rank) const;
  // The base axes of named axes of a mesh, as of `#sdy<manual_axes{..}>`.
  absl::StatusOr<AxisList> AxesByName(const Mesh& mesh, absl::Span<const std::string> names) const;

 private:
  friend class MeshCollector;
  std::vector<const BaseMesh*> bases_;
  std::vector<Mesh> meshes_;
};

class MeshCollector {
 public:
  void AddNamed(const Mesh& mesh);
  // A base mesh of an earlier import. Call this before adding anything else. Meshes that fit it do
  // not cut its axes any further.
  void AddBase(const Mesh& mesh);
  // The mesh of a sharding of any kind; tuples are visited element by element. Kinds other than
  // tiled and V3 (inline mesh) add none. E160 for a device list that names a device twice.
  absl::Status AddTiling(const HloSharding& sharding);
  absl::Status AddTiling(const NamedSharding& sharding);  // its inline mesh

  // `num_devices`: the program's partitions, or 0 for the number of devices of the largest mesh.
  // E163 for a mesh over another number of devices, except for maximal meshes and the mesh without
  // axes, and for a tiling over more. A tiling over fewer is taken as one over all
  // (subset_tiling.h); if it has no such form, FromHlo refuses it.
  absl::StatusOr<MeshSet> Finish(Context& context, int64_t num_devices = 0);

 private:
  std::vector<Mesh> meshes_;  // the first of them are base meshes
  size_t num_bases_ = 0;
  std::vector<HloSharding> tilings_;
};

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_SHARDING_CONVERT_MESH_SET_H_
