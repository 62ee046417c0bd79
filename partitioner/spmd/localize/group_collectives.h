// SPDX-License-Identifier: Apache-2.0
// Collectives over replica groups with what the backend has: each is emitted as it is, or in the
// way that sharding/backend.h names for it. Each collective that is emitted is recorded.
#ifndef SHARDCALL_PARTITIONER_SPMD_LOCALIZE_GROUP_COLLECTIVES_H_
#define SHARDCALL_PARTITIONER_SPMD_LOCALIZE_GROUP_COLLECTIVES_H_

#include <cstdint>
#include <vector>

#include "shardcall/partitioner/spmd/localize/emitter.h"
#include "shardcall/sharding/backend.h"

namespace shardcall {
inline namespace internal {

// An array with all bits zero, which is not the number 0 in a type that has none.
InstrId ZeroBits(GraphBuilder& b, const Shape* shape);

class GroupCollectives {
 public:
  // `groups` are of one size. All outlive this.
  GroupCollectives(Emitter& e, const ReplicaGroups& groups);

  // The operand has a shape that the collective takes: a dimension that is cut has a multiple of
  // the devices of a group. `monoid` is one that engines reduce by (EngineReduces), but for types
  // of which the way taken needs no reducing collective.
  InstrId AllReduce(InstrId x, Opcode monoid);
  InstrId AllGather(InstrId x, int dim);
  InstrId ReduceScatter(InstrId x, int dim, Opcode monoid);
  InstrId AllToAll(InstrId x, int dim);
  // What the first device of a group has; zeros on devices that are in no group.
  InstrId Broadcast(InstrId x);
  // Of a value that all devices of a group but one hold zero bits of, that device's, bit for bit,
  // including negative zeros and NaNs.
  InstrId FromOne(InstrId x);

 private:
  bool Has(Collective c) const { return backend_.Has(c); }
  // The first part of the way of a collective that lacks.
  Collective By(Collective c) const;
  InstrId Made(InstrId id);
  int64_t NextChannel() { return e_.shared().next_channel++; }

  // By device, what `of` says of its group and of its place in it; 0 for those in no group.
  template <typename Of>
  InstrId ByDevice(Of of);
  InstrId Position();  // of this device in its group, s32[]
  // x of each device of the group, along a new first dimension.
  InstrId Stacked(InstrId x);
  InstrId StackedByPermutes(InstrId x);
  // Rows of the first dimension, one for each device of the group, to their devices; by sender.
  InstrId ExchangeRows(InstrId rows);
  InstrId ExchangeRowsByPermutes(InstrId rows);
  // From each device, what the one `distance` places before it in its group has.
  InstrId Shifted(InstrId x, int64_t distance);
  // n rows from `start` on, in a ring.
  InstrId Rolled(InstrId rows, InstrId start);
  // x, whose dimension `dim` is one block for each device of the group, with those blocks as rows,
  // and back.
  InstrId BlocksToRows(InstrId x, int dim);
  InstrId RowsToBlocks(InstrId rows, int dim);
  // This device's part of dimension `dim`, which is cut into one for each device of the group.
  InstrId OwnPart(InstrId x, int dim);

  Emitter& e_;
  GraphBuilder& b_;
  const ReplicaGroups& groups_;
  const int64_t n_;        // devices of a group
  BackendLimits backend_;  // what can run over these groups
  bool picks_ = false;     // gathers are those of all devices, of which the group's parts are taken
  std::vector<std::vector<int64_t>> lists_;  // where the backend lacks something
  InstrId position_;
};

// A collective-permute within groups; null: of all devices.
InstrId SendPairs(Emitter& e, InstrId x, absl::Span<const int64_t> sources,
                  absl::Span<const int64_t> targets, const ReplicaGroups* groups = nullptr);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_SPMD_LOCALIZE_GROUP_COLLECTIVES_H_
