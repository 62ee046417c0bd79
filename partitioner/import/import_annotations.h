// SPDX-License-Identifier: Apache-2.0
// Converts annotations to constraints: Shardy's attributes, GSPMD's shardings with
// `unspecified_dims`, and named shardings (V3). A constraint is parsed once per distinct text.
#ifndef SHARDCALL_PARTITIONER_IMPORT_IMPORT_ANNOTATIONS_H_
#define SHARDCALL_PARTITIONER_IMPORT_IMPORT_ANNOTATIONS_H_

#include <cstdint>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "shardcall/partitioner/import/import.h"
#include "shardcall/partitioner/import/import_internal.h"
#include "shardcall/sharding/convert/mesh_set.h"
#include "shardcall/sharding/rule/sdy_text.h"

namespace shardcall {
inline namespace internal {
namespace import_internal {

// The Shardy attributes of one instruction, parsed.
struct SdyAttributes {
  std::vector<NamedSharding> shardings;  // xla.sdy.sharding
  std::vector<NamedSharding> boundary;   // xla.sdy.in_shardings or out_shardings
  std::vector<std::string> manual_axes;
  bool has_sharding = false, is_boundary = false;
};

class Annotations {
 public:
  Annotations(const InlinedModule& inlined, Program* program)
      : inlined_(inlined), m_(inlined.module), p_(*program) {}

  // Parses every distinct text and builds the base meshes of the program. E051
  // where the header, the options and the meshes differ in devices.
  absl::Status ReadMeshes(const ImportOptions& options);
  // Fills in constraints by leaf, boundaries of manual regions, and kinds of annotation.
  absl::Status ReadConstraints();
  // Dynamic shapes are not sharded, since the size of a shard would not be known. E054: a sharding
  // of such a value.
  absl::Status HoldDynamicSizesWhole();
  // Call after regions are found: adds the manual axes in force to the constraints. E172: an
  // annotation that contradicts its region.
  absl::Status SettleManualAxes();
  // Reads the shardings of entry parameters and results, and requests identity ops where a
  // result's constraint differs from its producer's.
  absl::Status ReadSignature(ModuleEdit* edit);

 private:
  // Text or parsed sharding, rank, and unspecified dims.
  using MemoKey = std::tuple<const void*, int, const char*>;

  // import_meshes.cc
  absl::Status CollectShardings(MeshCollector* collector);
  absl::Status NameBaseMeshes();

  // import_shardy.cc
  absl::Status CollectShardy(const Instruction& i, MeshCollector* collector);
  absl::Status ReadShardy(InstrId id, const SdyAttributes& attributes);
  absl::Status ReadShardyBoundary(InstrId id, const SdyAttributes& attributes);
  bool UsesShardyAttribute(InstrId id, const SdyAttributes** out) const;

  // import_groups.cc
  absl::StatusOr<int64_t> GroupOf(InstrId call);  // the id that it names
  absl::Status ReadGroups(absl::Span<const InstrId> calls);

  // import_gspmd.cc
  absl::Status ReadHloSharding(InstrId id);
  absl::Status ReadOutfeed(InstrId id);
  absl::Status ReadGspmdBoundary(InstrId id);
  absl::Status OnAllDevices(const Instruction& side) const;
  absl::StatusOr<const ShardingConstraint*> HloConstraint(const Instruction& i,
                                                          const HloSharding& sharding,
                                                          const Shape* leaf);
  bool IsInterface(const Instruction& i) const;
  absl::StatusOr<ShardingConstraint> OfSomeDevices(const Instruction& i,
                                                   const HloSharding& sharding, int rank);

  // import_manual.cc
  absl::Status SetManualDims(InstrId id, const std::vector<const ShardingConstraint*>& global,
                             ManualBoundary boundary);

  const ShardingConstraint* Own(ShardingConstraint c);
  // Leaf k of `id`, or null for tokens and such.
  const Shape* LeafShape(InstrId id, int k) const;

  // import_signature.cc
  bool InNestedTuple(int flat) const;  // a result that no instruction can be put behind
  bool IsStacked(LeafId value) const;  // a loop replaces parts of it
  const ShardingConstraint* Opened(const ShardingConstraint& c);
  void AskForIdentity(int flat, const ShardingConstraint& c, ModuleEdit* edit);

  const InlinedModule& inlined_;
  const Module& m_;
  MeshSet meshes_;
  std::vector<Mesh> user_meshes_;  // as the program names them, in order
  bool has_dictionary_ = false;    // xla.sdy.meshes
  Program& p_;
  absl::flat_hash_map<const FrontendAttributes*, SdyAttributes> shardy_;
  absl::flat_hash_map<MemoKey, const ShardingConstraint*> memo_;
};

// A constraint that says nothing.
ShardingConstraint OpenConstraint(const BaseMesh* mesh, int rank);
// One that says "replicated".
ShardingConstraint ClosedConstraint(const BaseMesh* mesh, int rank);
bool SameConstraint(const ShardingConstraint& a, const ShardingConstraint& b);
// The parts of `axes` that lie in `set`, in order.
AxisList Within(const BaseMesh& mesh, absl::Span<const AxisRef> axes,
                absl::Span<const AxisRef> set);
// The same error with the instruction's name behind it.
absl::Status At(const absl::Status& status, const Instruction& i);

// import_groups.cc. W211: groups whose values cannot be sharded alike.
void WarnOfGroups(Program* program);

}  // namespace import_internal
}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IMPORT_IMPORT_ANNOTATIONS_H_
