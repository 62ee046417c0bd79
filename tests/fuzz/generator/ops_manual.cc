// SPDX-License-Identifier: Apache-2.0
// Manual regions: each device computes on its own tile and talks to the others by
// collectives. With options.reference the same choices give what the region means
// for the whole array, which one device can run.
#include <algorithm>
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "shardcall/sharding/hlo_sharding.h"
#include "tests/fuzz/generator/ops.h"

namespace shardcall::generator {
namespace {

// A mesh of one or two axes over all devices, row-major. Axis k cuts dimension dims[k]
// of the array, or none (-1) once the tiles along it are equal.
struct Tiling {
  std::vector<int64_t> sizes;
  std::vector<int64_t> dims;
};

std::string ShardingText(const Tiling& t, int rank) {
  std::vector<int64_t> tiles(rank, 1), order;
  int64_t devices = 1, copies = 1;
  for (size_t k = 0; k < t.sizes.size(); ++k) {
    devices *= t.sizes[k];
    if (t.dims[k] >= 0) tiles[t.dims[k]] = t.sizes[k];
    if (t.dims[k] >= 0) order.push_back(static_cast<int64_t>(k));
  }
  // Axes by the dimension that they cut, the others last.
  std::sort(order.begin(), order.end(),
            [&](int64_t a, int64_t b) { return t.dims[a] < t.dims[b]; });
  for (size_t k = 0; k < t.sizes.size(); ++k) {
    if (t.dims[k] >= 0) continue;
    order.push_back(static_cast<int64_t>(k));
    copies *= t.sizes[k];
  }
  if (copies == devices) return "{replicated}";
  if (copies > 1) tiles.push_back(copies);
  return absl::StrCat("{devices=[", absl::StrJoin(tiles, ","), "]<=[", absl::StrJoin(t.sizes, ","),
                      "]T(", absl::StrJoin(order, ","), ")",
                      copies > 1 ? " last_tile_dim_replicate}" : "}");
}

}  // namespace

// What a region holds between two steps: the tile, or the whole array.
struct Region {
  Tiling tiling;
  Dims dims;  // of the whole array
  InstrId id;
  double bound = 0;

  int64_t devices() const {
    return tiling.sizes.size() == 2 ? tiling.sizes[0] * tiling.sizes[1] : tiling.sizes[0];
  }
  Dims Tile() const {
    Dims tile = dims;
    for (size_t k = 0; k < tiling.sizes.size(); ++k) {
      if (tiling.dims[k] >= 0) tile[tiling.dims[k]] /= tiling.sizes[k];
    }
    return tile;
  }
  // Device of the given place along `axis` and along the other one.
  int64_t Device(size_t axis, int64_t place, int64_t other) const {
    if (tiling.sizes.size() == 1) return place;
    return axis == 0 ? place * tiling.sizes[1] + other : other * tiling.sizes[1] + place;
  }
};

// Collectives and reference ops along one axis of a region.
class RegionStep {
 public:
  RegionStep(GraphBuilder& b, Region& r, size_t axis, bool reference)
      : b_(b),
        r_(r),
        axis_(axis),
        reference_(reference),
        parts_(r.tiling.sizes[axis]),
        dim_(r.tiling.dims[axis]) {
    const int64_t others = r.devices() / parts_;
    for (int64_t other = 0; other < others; ++other) {
      for (int64_t place = 0; place < parts_; ++place) {
        members_.push_back(r.Device(axis, place, other));
      }
    }
    for (int64_t g = 0; g < others; ++g) {
      lists_.push_back(absl::MakeConstSpan(members_).subspan(g * parts_, parts_));
    }
    groups_.form = ReplicaGroups::Form::kLists;
    groups_.lists = lists_;
  }

  void AllReduce() {
    if (reference_) {
      r_.id = Folded();
    } else {
      r_.id = b_.AllReduce(r_.id, groups_, 1, Opcode::kAdd);
    }
    r_.dims[dim_] /= parts_;
    r_.tiling.dims[axis_] = -1;
    r_.bound *= static_cast<double>(parts_);
  }
  // As AllReduce, and cut along the same dimension; the tile must divide.
  void ReduceScatter() {
    r_.id = reference_ ? Folded() : b_.ReduceScatter(r_.id, dim_, groups_, 1, Opcode::kAdd);
    r_.dims[dim_] /= parts_;
    r_.bound *= static_cast<double>(parts_);
  }
  void AllGather() {
    if (!reference_) r_.id = b_.AllGather(r_.id, dim_, groups_, 1);
    r_.tiling.dims[axis_] = -1;
  }
  // Piece i of tile j becomes piece j of tile i, pieces along `split` (not cut otherwise).
  void AllToAll(int64_t split) {
    if (!reference_) {
      r_.id = b_.AllToAll(r_.id, split, groups_, 1);
      return;
    }
    Dims apart, order;
    int64_t tile_at = -1, piece_at = -1;
    for (int64_t d = 0; d < static_cast<int64_t>(r_.dims.size()); ++d) {
      int64_t rest = r_.dims[d];
      if (d == dim_) {
        tile_at = static_cast<int64_t>(apart.size());
        apart.push_back(parts_);
        rest /= parts_;
      }
      if (d == split) {
        piece_at = static_cast<int64_t>(apart.size());
        apart.push_back(parts_);
        rest /= parts_;
      }
      apart.push_back(rest);
    }
    for (size_t k = 0; k < apart.size(); ++k) order.push_back(static_cast<int64_t>(k));
    std::swap(order[tile_at], order[piece_at]);
    r_.id = b_.Reshape(b_.Transpose(b_.Reshape(r_.id, apart), order), r_.dims);
  }
  // Each tile goes to the next place, the last one to the first.
  void Rotate() {
    if (reference_) {
      const int64_t extent = r_.dims[dim_], tile = extent / parts_;
      Dims low(r_.dims.size(), 0), high = r_.dims, middle = low, cut = r_.dims;
      middle[dim_] = cut[dim_] = extent - tile;
      r_.id = b_.Concatenate({b_.Slice(r_.id, middle, high), b_.Slice(r_.id, low, cut)}, dim_);
      return;
    }
    Dims sources, targets;
    for (const Ints list : lists_) {
      for (int64_t place = 0; place < parts_; ++place) {
        sources.push_back(list[place]);
        targets.push_back(list[(place + 1) % parts_]);
      }
    }
    r_.id = b_.CollectivePermute(r_.id, sources, targets, 1);
  }
  // The place along the axis is added.
  void AddPlace() {
    const ElementType type = b_.type(r_.id);
    InstrId place;
    if (reference_) {
      const InstrId at = b_.Iota(ElementType::kS32, r_.dims, dim_);
      const InstrId tile = b_.BroadcastScalar(
          b_.ConstantInt(ElementType::kS32, std::max<int64_t>(1, r_.dims[dim_] / parts_)),
          b_.shape(at));
      place = b_.Convert(b_.Binary(Opcode::kDivide, at, tile), type);
    } else {
      InstrId id = b_.PartitionId();
      if (r_.tiling.sizes.size() == 2) {
        const InstrId inner = b_.ConstantInt(ElementType::kU32, r_.tiling.sizes[1]);
        id = b_.Binary(axis_ == 0 ? Opcode::kDivide : Opcode::kRemainder, id, inner);
      }
      place = b_.BroadcastScalar(b_.Convert(id, type), b_.shape(r_.id));
    }
    r_.id = b_.Binary(Opcode::kAdd, r_.id, place);
    r_.bound += static_cast<double>(parts_);
  }

  int64_t dim() const { return dim_; }
  int64_t parts() const { return parts_; }

 private:
  // The sum of the tiles along the axis.
  InstrId Folded() {
    Dims apart = r_.dims;
    apart[dim_] /= parts_;
    apart.insert(apart.begin() + dim_, parts_);
    const InstrId tiles = b_.Reshape(r_.id, apart);
    return b_.Reduce(tiles, b_.Zero(b_.type(tiles)), {dim_}, Opcode::kAdd);
  }

  GraphBuilder& b_;
  Region& r_;
  size_t axis_;
  bool reference_;
  int64_t parts_, dim_;
  Dims members_;
  std::vector<Ints> lists_;
  ReplicaGroups groups_;
};

InstrId Generator::Boundary(Scope& s, const char* target, InstrId x, const Dims& dims,
                            const std::string& sharding) {
  CustomCallAttrs attrs;
  attrs.target = target;
  const InstrId id = s.b.CustomCall(attrs, {x}, Array(s.b.type(x), dims));
  const auto parsed = ParseHloSharding(sharding);
  if (!parsed.ok()) {
    if (status_.ok()) status_ = parsed.status();
    return InstrId();
  }
  module_.mutable_instr(id).sharding = InternHloSharding(*context_, *parsed);
  return id;
}

bool Generator::ManualRegion(Scope& s) {
  if (fused_) return false;
  const ElementType type = random_.Chance(60) ? ElementType::kF32 : ElementType::kS32;
  // Six devices: a mesh [3,2] may not agree with the program's, [2,3].
  const bool two = (devices_ == 4 || devices_ == 8) && random_.Chance(50);
  Region r;
  r.tiling.sizes = two ? Dims{devices_ / 2, 2} : Dims{devices_};
  const int rank = static_cast<int>(random_.Int(two ? 2 : 1, 3));
  r.dims = Dims(rank);
  for (int64_t& d : r.dims) d = random_.Int(1, 4);
  r.tiling.dims = random_.Subset(rank, two ? 2 : 1);
  if (two && random_.Chance(40)) std::swap(r.tiling.dims[0], r.tiling.dims[1]);
  for (size_t k = 0; k < r.tiling.sizes.size(); ++k) r.dims[r.tiling.dims[k]] *= r.tiling.sizes[k];
  const Value v = Bounded(s, Like(s, type, r.dims), 16);
  r.id = v.id;
  r.bound = v.bound;
  const bool manual = !options_.reference;
  if (!manual) r.id = s.b.Copy(r.id);  // read in both forms
  if (manual) {
    const InstrId cut = Boundary(s, "Sharding", r.id, r.dims, ShardingText(r.tiling, rank));
    if (!cut.valid()) return false;
    r.id = Boundary(s, "SPMDFullToShardShape", cut, r.Tile(), "{manual}");
  }
  for (int64_t steps = random_.Int(1, 4); steps > 0; --steps) {
    const size_t axis = random_.Int(0, static_cast<int64_t>(r.tiling.sizes.size()) - 1);
    const int kind = static_cast<int>(random_.Int(0, 6));
    const int64_t split = random_.Int(0, rank - 1);
    if (kind == 0 || r.tiling.dims[axis] < 0) {
      const InstrId two_of = s.b.BroadcastScalar(Scalar(s, type, 2), s.b.shape(r.id));
      r.id = s.b.Binary(Opcode::kAdd, s.b.Binary(Opcode::kMultiply, r.id, two_of), two_of);
      r.bound = 2 * r.bound + 2;
      continue;
    }
    RegionStep step(s.b, r, axis, options_.reference);
    const bool divides = r.Tile()[step.dim()] % step.parts() == 0;
    const bool cut_otherwise =
        split != step.dim() && std::count(r.tiling.dims.begin(), r.tiling.dims.end(), split) > 0;
    switch (kind) {
      case 1: step.AllReduce(); break;
      case 2:
        if (divides) step.ReduceScatter();
        break;
      case 3: step.AllGather(); break;
      case 4:
        if (!cut_otherwise && r.Tile()[split] % step.parts() == 0) step.AllToAll(split);
        break;
      case 5: step.Rotate(); break;
      default: step.AddPlace(); break;
    }
  }
  if (manual) {
    const InstrId tile = Boundary(s, "Sharding", r.id, r.Tile(), "{manual}");
    if (!tile.valid()) return false;
    r.id = Boundary(s, "SPMDShardToFullShape", tile, r.dims, ShardingText(r.tiling, rank));
  }
  if (!r.id.valid()) return false;
  // The boundary keeps its sharding: others are put on the copy, in both forms.
  s.values.push_back({s.b.Copy(r.id), r.bound, true});
  return true;
}

}  // namespace shardcall::generator
