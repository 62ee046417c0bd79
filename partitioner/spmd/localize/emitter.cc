// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/spmd/localize/emitter.h"

#include <cstring>
#include <vector>

#include "shardcall/partitioner/ir/build/async_pair.h"
#include "shardcall/partitioner/ir/shapes/collective_bytes.h"
#include "shardcall/partitioner/spmd/localize/group_collectives.h"
#include "shardcall/partitioner/spmd/localize/numbered.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {

namespace {

using Dims = absl::InlinedVector<int64_t, 8>;

}  // namespace

Emitter::Emitter(Module* module, CompId computation, const BaseMesh* mesh, Shared* shared)
    : b_(module, computation, &shared->monoids), mesh_(mesh), shared_(*shared) {}

InstrId Emitter::PartitionId() {
  if (!partition_id_.valid()) {
    Numbered numbered(b_);
    partition_id_ = b_.Convert(b_.PartitionId(), ElementType::kS32);
  }
  return partition_id_;
}

InstrId Emitter::PositionCoordinate(InstrId position, const BaseMesh* mesh,
                                    absl::Span<const AxisRef> axes) {
  // Neighbouring axes with contiguous strides need only one division.
  struct Run {
    int64_t stride, size;
  };
  absl::InlinedVector<Run, 4> runs;
  for (AxisRef a : axes) {
    const int64_t stride = mesh->Stride(a);
    if (!runs.empty() && runs.back().stride == stride * a.size) {
      runs.back() = {stride, runs.back().size * a.size};
    } else {
      runs.push_back({stride, a.size});
    }
  }
  InstrId sum;
  int64_t minor = AxesSize(axes);
  for (const Run& r : runs) {
    minor /= r.size;
    InstrId c = position;
    if (r.stride != 1) {
      c = b_.Binary(Opcode::kDivide, c, b_.ConstantInt(ElementType::kS32, r.stride));
    }
    if (r.stride * r.size != mesh->num_devices()) {
      c = b_.Binary(Opcode::kRemainder, c, b_.ConstantInt(ElementType::kS32, r.size));
    }
    if (minor != 1) c = b_.Binary(Opcode::kMultiply, c, b_.ConstantInt(ElementType::kS32, minor));
    sum = sum.valid() ? b_.Binary(Opcode::kAdd, sum, c) : c;
  }
  return sum.valid() ? sum : b_.ConstantInt(ElementType::kS32, 0);
}

InstrId Emitter::Coordinate(const BaseMesh* mesh, absl::Span<const AxisRef> axes) {
  Numbered numbered(b_);
  if (AxesSize(axes) == 1) return b_.ConstantInt(ElementType::kS32, 0);
  if (mesh->order().is_identity()) return PositionCoordinate(PartitionId(), mesh, axes);
  // Other device orders need a table of the coordinate by device.
  std::vector<int32_t> table(mesh->num_devices());
  for (int64_t p = 0; p < mesh->num_devices(); ++p) {
    table[mesh->order().DeviceAt(p)] = static_cast<int32_t>(mesh->Coordinate(axes, p));
  }
  return OfDevice(table);
}

InstrId Emitter::Lookup(absl::Span<const int32_t> table, InstrId index) {
  Context& context = b_.context();
  const Shape* shape = context.WithDefaultLayout(
      context.MakeArray(ElementType::kS32, {static_cast<int64_t>(table.size())}));
  const InstrId values = b_.Constant(MakeLiteral(
      context, shape,
      absl::MakeConstSpan(reinterpret_cast<const char*>(table.data()), table.size() * 4)));
  return b_.Reshape(b_.DynamicSlice(values, {index}, {1}), {});
}

InstrId Emitter::OfDevice(absl::Span<const int32_t> by_device) {
  Numbered numbered(b_);
  return Lookup(by_device, PartitionId());
}

InstrId Emitter::OfShard(absl::Span<const AxisRef> axes, absl::Span<const int64_t> by_shard) {
  Numbered numbered(b_);
  const ElementType s32 = ElementType::kS32;
  const int64_t n = static_cast<int64_t>(by_shard.size());
  const int64_t first = by_shard[0], slope = n > 1 ? by_shard[1] - first : 0;
  bool affine = true;
  for (int64_t i = 0; i < n; ++i) affine = affine && by_shard[i] == first + slope * i;
  if (affine && slope == 0) return b_.ConstantInt(s32, first);
  const InstrId shard = Coordinate(mesh_, axes);
  if (!affine) return Lookup(std::vector<int32_t>(by_shard.begin(), by_shard.end()), shard);
  const InstrId scaled = b_.Binary(Opcode::kMultiply, shard, b_.ConstantInt(s32, slope));
  return b_.Binary(Opcode::kAdd, scaled, b_.ConstantInt(s32, first));
}

InstrId Emitter::TileStart(const Sharding& s, const Shape* global, int dim) {
  Numbered numbered(b_);
  const int64_t tile = CeilDiv(global->dim(dim), s.num_shards(dim));
  const InstrId c = Coordinate(s.mesh(), s.dim(dim));
  return b_.Binary(Opcode::kMultiply, c, b_.ConstantInt(ElementType::kS32, tile));
}

InstrId Emitter::PadDim(InstrId x, int dim, int64_t size) {
  const Shape* shape = b_.shape(x);
  if (shape->dim(dim) == size) return x;
  Dims low(shape->rank(), 0), high(shape->rank(), 0);
  high[dim] = size - shape->dim(dim);
  return b_.Pad(x, b_.Zero(shape->element_type()), low, high);
}

InstrId Emitter::TrimDim(InstrId x, int dim, int64_t size) {
  const Shape* shape = b_.shape(x);
  if (shape->dim(dim) == size) return x;
  Dims starts(shape->rank(), 0), limits(shape->dims().begin(), shape->dims().end());
  limits[dim] = size;
  return b_.Slice(x, starts, limits);
}

InstrId Emitter::MaskPadding(InstrId x, const Shape* global, const Sharding& s,
                             absl::Span<const int> dims, InstrId fill) {
  const Shape* shape = b_.shape(x);
  InstrId valid;
  {
    Numbered numbered(b_);
    for (int d : dims) {
      if (global->dim(d) % s.num_shards(d) == 0) continue;
      const InstrId index = b_.Iota(ElementType::kS32, shape->dims(), d);
      const InstrId left =
          b_.Binary(Opcode::kSubtract, b_.ConstantInt(ElementType::kS32, global->dim(d)),
                    TileStart(s, global, d));
      const InstrId in =
          b_.Compare(Direction::kLt, index, b_.BroadcastScalar(left, b_.shape(index)));
      valid = valid.valid() ? b_.Binary(Opcode::kAnd, valid, in) : in;
    }
  }
  if (!valid.valid()) return x;
  return b_.Select(valid, x, b_.BroadcastScalar(fill, shape));
}

InstrId Emitter::OnFirst(InstrId value, absl::Span<const AxisRef> axes, PartialOp op) {
  const Shape* shape = b_.shape(value);
  InstrId first;
  {
    Numbered numbered(b_);
    first =
        b_.Compare(Direction::kEq, Coordinate(mesh_, axes), b_.ConstantInt(ElementType::kS32, 0));
    if (shape->rank() > 0) {
      first = b_.BroadcastScalar(first, shape);
    }
  }
  const InstrId identity = b_.Identity(MonoidOf(op), shape->element_type(), ZeroSign::kExact);
  return b_.Select(first, value, b_.BroadcastScalar(identity, shape));
}

const ReplicaGroups& Emitter::Groups(absl::Span<const AxisRef> axes) {
  for (const auto& known : shared_.groups) {
    if (known->mesh == mesh_ && absl::MakeConstSpan(known->axes) == axes) return known->groups;
  }
  shared_.groups.push_back(std::make_unique<Shared::KnownGroups>(
      Shared::KnownGroups{mesh_, AxisList(axes.begin(), axes.end()), MakeGroups(axes)}));
  return shared_.groups.back()->groups;
}

ReplicaGroups Emitter::MakeGroups(absl::Span<const AxisRef> axes) {
  ReplicaGroups groups;
  IotaGroups iota;
  Arena& arena = b_.context().arena();
  if (GroupsAsIota(*mesh_, axes, &iota)) {
    groups.form = ReplicaGroups::Form::kIota;
    groups.num_groups = iota.num_groups;
    groups.group_size = iota.group_size;
    groups.reshape = arena.Copy(absl::MakeConstSpan(iota.reshape));
    groups.perm = arena.Copy(absl::MakeConstSpan(iota.perm));
    return groups;
  }
  groups.form = ReplicaGroups::Form::kLists;
  std::vector<Ints> lists;
  for (const std::vector<int64_t>& g : GroupsAsLists(*mesh_, axes)) {
    lists.push_back(arena.Copy(absl::MakeConstSpan(g)));
  }
  groups.lists = arena.Copy(absl::MakeConstSpan(lists));
  groups.num_groups = static_cast<int64_t>(lists.size());
  groups.group_size = lists.empty() ? 0 : static_cast<int64_t>(lists[0].size());
  return groups;
}

InstrId Emitter::ReduceParts(InstrId parts, int dim, Opcode monoid) {
  const InstrId identity = b_.Identity(monoid, b_.type(parts), ZeroSign::kExact);
  return b_.Reduce(parts, identity, {dim}, monoid);
}

InstrId Emitter::AllReduce(InstrId x, absl::Span<const AxisRef> axes, PartialOp op) {
  if (!EngineReduces(op, b_.type(x))) {
    Dims dims{1};
    dims.insert(dims.end(), b_.shape(x)->dims().begin(), b_.shape(x)->dims().end());
    return ReduceParts(AllGather(b_.Reshape(x, dims), 0, axes), 0, MonoidOf(op));
  }
  return GroupCollectives(*this, Groups(axes)).AllReduce(x, MonoidOf(op));
}

InstrId Emitter::AllGather(InstrId x, int dim, absl::Span<const AxisRef> axes) {
  return GroupCollectives(*this, Groups(axes)).AllGather(x, dim);
}

InstrId Emitter::SendShards(InstrId x, absl::Span<const AxisRef> axes,
                            absl::Span<const std::pair<int64_t, int64_t>> pairs) {
  std::vector<int64_t> sources, targets;
  for (const std::vector<int64_t>& group : GroupsAsLists(*mesh_, axes)) {
    for (const auto& [source, target] : pairs) {
      sources.push_back(group[source]);
      targets.push_back(group[target]);
    }
  }
  return SendPairs(*this, x, sources, targets, &Groups(axes));
}

InstrId Emitter::ReduceScatter(InstrId x, int dim, absl::Span<const AxisRef> axes, PartialOp op) {
  const ReplicaGroups& groups = Groups(axes);
  if (!EngineReduces(op, b_.type(x))) {
    // Each device receives its tile of every device's part.
    Dims split(b_.shape(x)->dims().begin(), b_.shape(x)->dims().end());
    split[dim] /= groups.group_size;
    split.insert(split.begin() + dim, groups.group_size);
    const InstrId parts = GroupCollectives(*this, groups).AllToAll(b_.Reshape(x, split), dim);
    return ReduceParts(parts, dim, MonoidOf(op));
  }
  return GroupCollectives(*this, groups).ReduceScatter(x, dim, MonoidOf(op));
}

void Emitter::Record(InstrId id, int64_t group_size, int64_t num_groups) {
  const Module& m = b_.module();
  const Instruction& instr = Collective(id);
  CollectiveRecord r;
  r.local = id;
  r.computation = b_.computation();
  const AsyncForms* const started = FormsStartedBy(instr.opcode);
  r.opcode = started == nullptr ? instr.opcode : started->whole;
  r.group_size = group_size;
  r.num_groups = num_groups;
  r.bytes_in = OperandBytes(m, instr);
  r.bytes_moved = BytesSent(m, instr, group_size, mesh_->num_devices());
  const Crossing over = CrossingOf(m, instr, mesh_->num_devices());
  r.between_hosts = r.bytes_moved * over.between_hosts;
  r.more_seconds = m.context().Get<Links>().more_seconds(over, r.bytes_moved);
  if (needed_share_ >= 0) r.bytes_needed = needed_share_ * r.bytes_moved;
  r.cause = cause_;
  r.from = from_;
  r.to = to_;
  shared_.records.push_back(r);
}

const Instruction& Emitter::Collective(InstrId id) const {
  const Module& m = b_.module();
  if (m.instr(id).opcode != Opcode::kAsyncStart) return m.instr(id);
  const InstrId wrapped = WrappedCollective(m, m.instr(id));
  return m.instr(wrapped.valid() ? wrapped : id);
}

void Emitter::RecordAsWritten(InstrId id, int64_t num_devices) {
  int64_t group_size = num_devices, num_groups = 1;
  const Instruction& instr = Collective(id);
  if (FormsEndedBy(instr.opcode) != nullptr) return;  // its start is recorded
  if (instr.attrs->kind == AttrKind::kCollective) {
    const ReplicaGroups& groups = instr.as<CollectiveAttrs>().groups;
    if (groups.form == ReplicaGroups::Form::kLists && !groups.lists.empty()) {
      num_groups = static_cast<int64_t>(groups.lists.size());
      group_size = static_cast<int64_t>(groups.lists[0].size());
    } else if (groups.form == ReplicaGroups::Form::kIota) {
      num_groups = groups.num_groups;
      group_size = groups.group_size;
    }
  }
  Record(id, group_size, num_groups);
}

}  // namespace internal
}  // namespace shardcall
