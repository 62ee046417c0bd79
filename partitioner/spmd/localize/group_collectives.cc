// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/spmd/localize/group_collectives.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/algorithm/container.h"
#include "shardcall/partitioner/ir/iota_groups.h"
#include "shardcall/partitioner/spmd/localize/backend_limits.h"
#include "shardcall/sharding/reshard/links.h"

namespace shardcall {
inline namespace internal {
namespace {

using Dims = absl::InlinedVector<int64_t, 8>;

Dims DimsOf(GraphBuilder& b, InstrId x) {
  const Shape* shape = b.shape(x);
  return Dims(shape->dims().begin(), shape->dims().end());
}

// Bits of a type that NCCL sums, for elements of so many bits.
ElementType BitsOfSize(int bits) {
  switch (bits) {
    case 4: return ElementType::kU4;
    case 8: return ElementType::kU8;
    case 16: return ElementType::kU16;
    case 32: return ElementType::kU32;
    default: return ElementType::kU64;
  }
}

BackendLimits Only(Collective c) {
  BackendLimits backend;
  for (int k = 0; k < kNumCollectives; ++k) {
    if (static_cast<Collective>(k) != c) backend.lacks |= uint32_t{1} << k;
  }
  return backend;
}

ReplicaGroups WholeGroup(Emitter& e) {
  return AllDevices(e.builder().context().arena(), e.mesh()->num_devices());
}

// x where `is`, s32[], is not 0, else zero bits.
InstrId OrZeros(GraphBuilder& b, InstrId is, InstrId x) {
  const Shape* shape = b.shape(x);
  InstrId here = b.Compare(Direction::kNe, is, b.ConstantInt(ElementType::kS32, 0));
  if (shape->rank() > 0) here = b.BroadcastScalar(here, shape);
  return b.Select(here, x, ZeroBits(b, shape));
}

// Of x of the devices of a group, which are gathered, that of the source that each has there; -1:
// zero bits.
InstrId TakeFrom(Emitter& e, InstrId x, const ReplicaGroups& groups, std::vector<int32_t> sources) {
  GraphBuilder& b = e.builder();
  Dims row = DimsOf(b, x);
  row.insert(row.begin(), 1);
  const InstrId all = GroupCollectives(e, groups).AllGather(b.Reshape(x, row), 0);
  std::vector<int32_t> takes;
  for (int32_t& source : sources) {
    takes.push_back(source >= 0);
    source = std::max(source, 0);
  }
  absl::InlinedVector<InstrId, 8> starts(row.size(), b.ConstantInt(ElementType::kS32, 0));
  starts[0] = e.OfDevice(sources);
  const InstrId taken = b.Reshape(b.DynamicSlice(all, starts, row), DimsOf(b, x));
  return absl::c_linear_search(takes, 0) ? OrZeros(b, e.OfDevice(takes), taken) : taken;
}

}  // namespace

InstrId ZeroBits(GraphBuilder& b, const Shape* shape) {
  const ElementType type = shape->element_type();
  return b.BroadcastScalar(IsFloat(type) ? b.ConstantBits(type, 0) : b.Zero(type), shape);
}

GroupCollectives::GroupCollectives(Emitter& e, const ReplicaGroups& groups)
    : e_(e),
      b_(e.builder()),
      groups_(groups),
      n_(groups.group_size),
      backend_(b_.context().Get<Links>().backend()) {
  if (backend_.has_all()) return;
  const int64_t devices = e.mesh()->num_devices();
  lists_ = *ListedGroups(groups, devices);
  if (RunsOver(backend_, groups, devices)) return;
  picks_ = !Has(Collective::kPermute);
  backend_ = Only(picks_ ? Collective::kAllGather : Collective::kPermute);
}

Collective GroupCollectives::By(Collective c) const { return WayOf(backend_, c, n_)[0].by; }

InstrId GroupCollectives::Made(InstrId id) {
  e_.Record(id, groups_.group_size, groups_.num_groups);
  return id;
}

template <typename Of>
InstrId GroupCollectives::ByDevice(Of of) {
  std::vector<int32_t> table(e_.mesh()->num_devices(), 0);
  for (const std::vector<int64_t>& list : lists_) {
    for (size_t k = 0; k < list.size(); ++k) {
      table[list[k]] = static_cast<int32_t>(of(list, static_cast<int64_t>(k)));
    }
  }
  return e_.OfDevice(table);
}

InstrId GroupCollectives::Position() {
  if (!position_.valid()) {
    position_ = ByDevice([](const auto&, int64_t k) { return k; });
  }
  return position_;
}

InstrId GroupCollectives::AllReduce(InstrId x, Opcode monoid) {
  if (Has(Collective::kAllReduce)) {
    return Made(b_.AllReduce(x, groups_, NextChannel(), monoid));
  }
  if (By(Collective::kAllReduce) == Collective::kAllGather) {
    return e_.ReduceParts(Stacked(x), 0, monoid);
  }
  const int64_t size = b_.shape(x)->num_elements();
  const int64_t padded = CeilDiv(std::max<int64_t>(size, 1), n_) * n_;
  const InstrId flat = e_.PadDim(b_.Reshape(x, {size}), 0, padded);
  const InstrId all = AllGather(ReduceScatter(flat, 0, monoid), 0);
  return b_.Reshape(e_.TrimDim(all, 0, size), DimsOf(b_, x));
}

InstrId GroupCollectives::AllGather(InstrId x, int dim) {
  if (Has(Collective::kAllGather) && !picks_) {
    return Made(b_.AllGather(x, dim, groups_, NextChannel()));
  }
  return RowsToBlocks(Stacked(x), dim);
}

InstrId GroupCollectives::ReduceScatter(InstrId x, int dim, Opcode monoid) {
  if (Has(Collective::kReduceScatter)) {
    return Made(b_.ReduceScatter(x, dim, groups_, NextChannel(), monoid));
  }
  const Collective by = By(Collective::kReduceScatter);
  if (by == Collective::kAllReduce) return OwnPart(AllReduce(x, monoid), dim);
  if (by == Collective::kAllGather) {
    return e_.ReduceParts(OwnPart(Stacked(x), dim + 1), 0, monoid);
  }
  return e_.ReduceParts(ExchangeRows(BlocksToRows(x, dim)), 0, monoid);
}

InstrId GroupCollectives::AllToAll(InstrId x, int dim) {
  if (Has(Collective::kAllToAll)) return Made(b_.AllToAll(x, dim, groups_, NextChannel()));
  return RowsToBlocks(ExchangeRows(BlocksToRows(x, dim)), dim);
}

InstrId GroupCollectives::Broadcast(InstrId x) {
  std::vector<int32_t> sources(e_.mesh()->num_devices(), -1);
  for (const std::vector<int64_t>& list : lists_) {
    for (int64_t device : list) sources[device] = static_cast<int32_t>(list[0]);
  }
  const bool some_take_no_part = absl::c_linear_search(sources, -1);
  if (some_take_no_part || By(Collective::kBroadcast) != Collective::kAllReduce) {
    return TakeFrom(e_, x, WholeGroup(e_), std::move(sources));
  }
  const InstrId first = ByDevice([](const auto&, int64_t k) { return k == 0; });
  return FromOne(OrZeros(b_, first, x));
}

InstrId GroupCollectives::FromOne(InstrId x) {
  const ElementType type = b_.type(x);
  if (IsComplex(type)) {
    const InstrId re = FromOne(b_.Unary(Opcode::kReal, x));
    const InstrId im = FromOne(b_.Unary(Opcode::kImag, x));
    return b_.Binary(Opcode::kComplex, re, im);
  }
  if (type == ElementType::kPred) return AllReduce(x, Opcode::kOr);
  if (IsFloat(type)) {
    const InstrId bits = b_.BitcastConvert(x, BitsOfSize(ElementTypeBits(type)));
    return b_.BitcastConvert(FromOne(bits), type);
  }
  // NCCL has no sums of 4 and 16 bits: those are widened.
  const int width = ElementTypeBits(type);
  if (width == 8 || width >= 32) return AllReduce(x, Opcode::kAdd);
  const InstrId wide = b_.Convert(x, width < 8 ? ElementType::kS8 : ElementType::kS32);
  return b_.Convert(AllReduce(wide, Opcode::kAdd), type);
}

InstrId GroupCollectives::Stacked(InstrId x) {
  Dims dims = DimsOf(b_, x);
  dims.insert(dims.begin(), 1);
  const InstrId row = b_.Reshape(x, dims);
  dims[0] = n_;
  if (picks_) {  // the rows of the group's devices, of those of all devices
    const ReplicaGroups whole = WholeGroup(e_);
    const InstrId all = GroupCollectives(e_, whole).Stacked(x);
    std::vector<InstrId> rows;
    for (int64_t k = 0; k < n_; ++k) {
      absl::InlinedVector<InstrId, 8> starts(dims.size(), b_.ConstantInt(ElementType::kS32, 0));
      starts[0] = ByDevice([&](const auto& list, int64_t) { return list[k]; });
      rows.push_back(b_.DynamicSlice(all, starts, DimsOf(b_, row)));
    }
    return b_.Concatenate(rows, 0);
  }
  if (Has(Collective::kAllGather)) return Made(b_.AllGather(row, 0, groups_, NextChannel()));
  const Collective by = By(Collective::kAllGather);
  if (by == Collective::kPermute) return StackedByPermutes(row);
  if (by == Collective::kAllToAll) {
    Dims kept(dims.size() - 1);
    std::iota(kept.begin(), kept.end(), 1);
    return ExchangeRows(b_.Broadcast(x, dims, kept));
  }
  const InstrId around = ZeroBits(b_, b_.context().WithDims(b_.shape(row), dims));
  absl::InlinedVector<InstrId, 8> starts(dims.size(), b_.ConstantInt(ElementType::kS32, 0));
  starts[0] = Position();
  return FromOne(b_.DynamicUpdateSlice(around, row, starts));
}

InstrId GroupCollectives::Shifted(InstrId x, int64_t distance) {
  std::vector<int64_t> sources, targets;
  for (const std::vector<int64_t>& list : lists_) {
    for (int64_t k = 0; k < n_; ++k) {
      sources.push_back(list[((k - distance) % n_ + n_) % n_]);
      targets.push_back(list[k]);
    }
  }
  return SendPairs(e_, x, sources, targets, &groups_);
}

InstrId GroupCollectives::Rolled(InstrId rows, InstrId start) {
  absl::InlinedVector<InstrId, 8> starts(b_.shape(rows)->rank(),
                                         b_.ConstantInt(ElementType::kS32, 0));
  starts[0] = start;
  return b_.DynamicSlice(b_.Concatenate({rows, rows}, 0), starts, DimsOf(b_, rows));
}

// Bruck's algorithm (IEEE Transactions on Parallel and Distributed Systems 8, 1997): each round
// sends all rows that a device has, so that they double. Those of a device begin with its own.
InstrId GroupCollectives::StackedByPermutes(InstrId row) {
  InstrId rows = row;
  for (int64_t have = 1; have < n_;) {
    const int64_t more = std::min(have, n_ - have);
    Dims starts(b_.shape(rows)->rank(), 0), limits = DimsOf(b_, rows);
    limits[0] = more;
    rows = b_.Concatenate({rows, Shifted(b_.Slice(rows, starts, limits), -have)}, 0);
    have += more;
  }
  return Rolled(rows, ByDevice([&](const auto&, int64_t k) { return (n_ - k) % n_; }));
}

InstrId GroupCollectives::ExchangeRows(InstrId rows) {
  if (Has(Collective::kAllToAll)) return Made(b_.AllToAll(rows, 0, groups_, NextChannel()));
  if (By(Collective::kAllToAll) == Collective::kPermute) return ExchangeRowsByPermutes(rows);
  // The rows of all devices for this one.
  const InstrId mine = OwnPart(Stacked(rows), 1);
  return b_.Reshape(mine, DimsOf(b_, rows));
}

// Device k sends the row for k + d over distance d. What came over distance d is from k - d, so
// that in falling order of distances the senders rise from k on.
InstrId GroupCollectives::ExchangeRowsByPermutes(InstrId rows) {
  const InstrId by_distance = Rolled(rows, Position());
  std::vector<InstrId> from(n_);
  for (int64_t d = 0; d < n_; ++d) {
    Dims starts(b_.shape(rows)->rank(), 0), limits = DimsOf(b_, rows);
    starts[0] = d;
    limits[0] = d + 1;
    const InstrId row = b_.Slice(by_distance, starts, limits);
    from[(n_ - d) % n_] = d == 0 ? row : Shifted(row, d);
  }
  return Rolled(b_.Concatenate(from, 0),
                ByDevice([&](const auto&, int64_t k) { return (n_ - k) % n_; }));
}

InstrId GroupCollectives::BlocksToRows(InstrId x, int dim) {
  Dims split = DimsOf(b_, x), order;
  split[dim] /= n_;
  split.insert(split.begin() + dim, n_);
  order.push_back(dim);
  for (int d = 0; d < static_cast<int>(split.size()); ++d) {
    if (d != dim) order.push_back(d);
  }
  const InstrId cut = b_.Reshape(x, split);
  return dim == 0 ? cut : b_.Transpose(cut, order);
}

InstrId GroupCollectives::RowsToBlocks(InstrId rows, int dim) {
  const Dims dims = DimsOf(b_, rows);
  Dims order, merged(dims.begin() + 1, dims.end());
  for (int d = 1; d < static_cast<int>(dims.size()); ++d) {
    if (d == dim + 1) order.push_back(0);
    order.push_back(d);
  }
  merged[dim] *= n_;
  return b_.Reshape(dim == 0 ? rows : b_.Transpose(rows, order), merged);
}

InstrId GroupCollectives::OwnPart(InstrId x, int dim) {
  Dims sizes = DimsOf(b_, x);
  sizes[dim] /= n_;
  absl::InlinedVector<InstrId, 8> starts(sizes.size(), b_.ConstantInt(ElementType::kS32, 0));
  starts[dim] = ByDevice([&](const auto&, int64_t k) { return k * sizes[dim]; });
  return b_.DynamicSlice(x, starts, sizes);
}

InstrId SendPairs(Emitter& e, InstrId x, absl::Span<const int64_t> sources,
                  absl::Span<const int64_t> targets, const ReplicaGroups* groups) {
  GraphBuilder& b = e.builder();
  const int64_t devices = e.mesh()->num_devices();
  const ReplicaGroups& among = groups == nullptr ? WholeGroup(e) : *groups;
  if (b.context().Get<Links>().backend().Has(Collective::kPermute)) {
    const InstrId sent = b.CollectivePermute(x, sources, targets, e.shared().next_channel++);
    e.Record(sent, among.group_size, among.num_groups);
    return sent;
  }
  std::vector<int32_t> place(devices), by_target(devices, -1);
  const auto lists = ListedGroups(among, devices);
  for (const std::vector<int64_t>& list : *lists) {
    for (size_t k = 0; k < list.size(); ++k) place[list[k]] = static_cast<int32_t>(k);
  }
  for (size_t k = 0; k < targets.size(); ++k) by_target[targets[k]] = place[sources[k]];
  return TakeFrom(e, x, among, std::move(by_target));
}

}  // namespace internal
}  // namespace shardcall
