// SPDX-License-Identifier: Apache-2.0
// Emits the code that moves and masks shards: the coordinates of a device, slices, pads, and the
// collectives of a reshard plan, with a record of each collective and of its cause. One Emitter
// per local computation.
#ifndef SHARDCALL_PARTITIONER_SPMD_LOCALIZE_EMITTER_H_
#define SHARDCALL_PARTITIONER_SPMD_LOCALIZE_EMITTER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "shardcall/partitioner/ir/build/builder.h"
#include "shardcall/partitioner/spmd/localize/collective_record.h"
#include "shardcall/sharding/reshard/reshard.h"

namespace shardcall {
inline namespace internal {

class Emitter {
 public:
  // State shared by the emitters of one local module.
  struct Shared {
    explicit Shared(Module* module) : monoids(module) {}
    MonoidTable monoids;
    int64_t next_channel = 1;
    std::vector<CollectiveRecord> records;
    // A few entries only, as programs communicate over few sets of axes.
    struct KnownGroups {
      const BaseMesh* mesh;
      AxisList axes;
      ReplicaGroups groups;
    };
    std::vector<std::unique_ptr<KnownGroups>> groups;
  };

  Emitter(Module* module, CompId computation, const BaseMesh* mesh, Shared* shared);

  GraphBuilder& builder() { return b_; }
  Shared& shared() { return shared_; }
  // The mesh that axes refer to, unless a sharding has another.
  const BaseMesh* mesh() const { return mesh_; }
  void set_mesh(const BaseMesh* mesh) { mesh_ = mesh; }
  void set_cause(const CollectiveCause& cause) { cause_ = cause; }
  void set_cause_index(int index) { cause_.index = index; }
  const CollectiveCause& cause() const { return cause_; }
  // Of what the collectives from here on send, the share that is needed (bytes_needed); -1: not
  // known.
  void set_needed_share(double share) { needed_share_ = share; }
  double needed_share() const { return needed_share_; }

  InstrId PartitionId();  // s32[]
  // Coordinate of this device along `axes` (major to minor), s32[].
  InstrId Coordinate(const BaseMesh* mesh, absl::Span<const AxisRef> axes);
  // The element of the table `by_device` for this device, s32[].
  InstrId OfDevice(absl::Span<const int32_t> by_device);
  // The element of the table for this device's coordinate along `axes` of mesh(), s32[]. No table
  // is emitted for an affine function of the coordinate.
  InstrId OfShard(absl::Span<const AxisRef> axes, absl::Span<const int64_t> by_shard);
  // The first global index of this device's tile in `dim`, s32[].
  InstrId TileStart(const Sharding& s, const Shape* global, int dim);

  // x is a shard of `global` under `from` (canonical tiles); returns the shard
  // under `to`. `steps`, where given, gets the value after each move of the plan.
  InstrId Reshard(InstrId x, const Shape* global, const Sharding* from, const Sharding* to,
                  absl::InlinedVector<InstrId, 4>* steps = nullptr);
  // The same for a value that the program does not have: records do not name the states.
  InstrId ReshardInside(InstrId x, const Shape* global, const Sharding* from, const Sharding* to);

  // x with `fill` (a scalar) wherever one of `dims` is past its valid extent. No
  // code for dimensions that divide evenly.
  InstrId MaskPadding(InstrId x, const Shape* global, const Sharding& s, absl::Span<const int> dims,
                      InstrId fill);
  // value where this device's coordinate along `axes` is 0, else the identity.
  InstrId OnFirst(InstrId value, absl::Span<const AxisRef> axes, PartialOp op);

  InstrId PadDim(InstrId x, int dim, int64_t size);  // at the end, with zeros
  InstrId TrimDim(InstrId x, int dim, int64_t size);

  const ReplicaGroups& Groups(absl::Span<const AxisRef> axes);
  // A reduction that engines lack (EngineReduces) is done by an all-gather or an all-to-all of the
  // parts, which are reduced locally.
  InstrId AllReduce(InstrId x, absl::Span<const AxisRef> axes, PartialOp op);
  InstrId AllGather(InstrId x, int dim, absl::Span<const AxisRef> axes);
  // Each pair: the shards over `axes` that send x and get it. All others get zeros.
  InstrId SendShards(InstrId x, absl::Span<const AxisRef> axes,
                     absl::Span<const std::pair<int64_t, int64_t>> pairs);
  InstrId ReduceScatter(InstrId x, int dim, absl::Span<const AxisRef> axes, PartialOp op);
  // Reduces dimension `dim`, which holds a part of each device.
  InstrId ReduceParts(InstrId parts, int dim, Opcode monoid);
  // Records a collective that was emitted by other code.
  void Record(InstrId id, int64_t group_size, int64_t num_groups);
  // The same, with the replica groups that the instruction itself has, or else all devices.
  void RecordAsWritten(InstrId id, int64_t num_devices);

 private:
  // table[index], s32[].
  InstrId Lookup(absl::Span<const int32_t> table, InstrId index);
  ReplicaGroups MakeGroups(absl::Span<const AxisRef> axes);
  // The collective that an instruction is, or that it starts.
  const Instruction& Collective(InstrId id) const;
  InstrId EmitMove(InstrId x, const Shape* global, const Move& move);
  // x with tiles of `tile` elements of dimension d, which is sharded as in `s`.
  InstrId Retile(InstrId x, const Shape* global, int d, const Sharding* s, int64_t tile);
  InstrId EmitSlice(InstrId x, const Shape* global, const Move& move);
  InstrId EmitAllToAll(InstrId x, const Shape* global, const Move& move);
  InstrId EmitPermute(InstrId x, const Move& move);
  InstrId EmitPadPartial(InstrId x, const Shape* global, const Move& move);
  // Where this device's tile of size `tile` in dimension d starts among those of the devices along
  // `axes`, for each dimension.
  absl::InlinedVector<InstrId, 8> StartsOfTile(int rank, int d, absl::Span<const AxisRef> axes,
                                               int64_t tile);
  InstrId PositionCoordinate(InstrId position, const BaseMesh* mesh,
                             absl::Span<const AxisRef> axes);

  GraphBuilder b_;
  const BaseMesh* mesh_;
  Shared& shared_;
  CollectiveCause cause_;
  bool names_states_ = true;
  const Sharding* from_ = nullptr;
  const Sharding* to_ = nullptr;
  double needed_share_ = -1;
  InstrId partition_id_;
};

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_SPMD_LOCALIZE_EMITTER_H_
