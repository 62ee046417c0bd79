// SPDX-License-Identifier: Apache-2.0
// Shardings. A ShardingConstraint is what a program says; a Sharding is what
// the engine decides; a LocalState is a Sharding with tiles and padding. The
// last two are interned in a Context: equality is pointer equality.
//
// In a Sharding every axis part is in exactly one place: a dimension, the
// partial axes, or the manual axes; all others are replicated.
#ifndef SHARDCALL_SHARDING_SHARDING_H_
#define SHARDCALL_SHARDING_SHARDING_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "shardcall/sharding/base/public.h"
#include "shardcall/sharding/context.h"
#include "shardcall/sharding/mesh.h"
#include "shardcall/sharding/partial_op.h"

namespace shardcall SHARDCALL_PUBLIC {

class Sharding {
 public:
  const BaseMesh* mesh() const { return mesh_; }  // never null
  int rank() const { return static_cast<int>(dims_.size()); }
  absl::Span<const AxisRef> dim(int i) const { return dims_[i]; }  // major to minor
  absl::Span<const AxisRef> partial() const { return partial_; }
  PartialOp partial_op() const { return partial_op_; }
  absl::Span<const AxisRef> manual() const { return manual_; }
  // The device of a maximal sharding (everything on one device), else -1.
  int64_t maximal_device() const { return maximal_device_; }
  bool is_maximal() const { return maximal_device_ >= 0; }

  int64_t num_shards(int i) const { return AxesSize(dims_[i]); }
  bool IsDimSharded(int i) const { return !dims_[i].empty(); }
  bool HasShardedDim() const { return has_sharded_dim_; }
  // No sharded dim, nothing partial, not maximal (manual axes do not count).
  bool IsReplicated() const { return !is_maximal() && partial_.empty() && !HasShardedDim(); }

  // Union of all axes in use; sorted, canonical.
  absl::Span<const AxisRef> used() const { return used_; }

  // `[{"data"}, {}]`, followed by `partial=add{"model"}` and `manual={..}` where present.
  std::string ToString() const;

 private:
  friend class ShardingInterner;
  const BaseMesh* mesh_ = nullptr;
  absl::Span<const absl::Span<const AxisRef>> dims_;
  absl::Span<const AxisRef> partial_, manual_, used_;
  PartialOp partial_op_ = PartialOp::kSum;
  int64_t maximal_device_ = -1;
  bool has_sharded_dim_ = false;
};

// A Sharding being made; canonicalised when interned.
struct ShardingBuilder {
  static constexpr int kMaxRank = 1 << 16;  // far above what an array has
  // A rank below 0 or above kMaxRank is kept for CheckSharding to refuse.
  ShardingBuilder(const BaseMesh* mesh, int rank)
      : mesh(mesh), dims(FitsRank(rank) ? rank : 0), refused_rank(FitsRank(rank) ? 0 : rank) {}
  explicit ShardingBuilder(const Sharding& s);
  const BaseMesh* mesh;
  absl::InlinedVector<AxisList, 4> dims;
  AxisList partial, manual;
  PartialOp partial_op = PartialOp::kSum;
  int64_t maximal_device = -1;
  int refused_rank = 0;
  static bool FitsRank(int rank) { return rank >= 0 && rank <= kMaxRank; }
  // Null for a builder that CheckSharding refuses.
  const Sharding* Intern(Context& context) const;
};
// Null for arguments that CheckSharding refuses.
const Sharding* ReplicatedSharding(Context& context, const BaseMesh* mesh, int rank,
                                   absl::Span<const AxisRef> manual = {});

// Meshes of a Context, interned by (sizes, order).
BaseMesh* InternBaseMesh(Context& context, std::vector<int64_t> sizes, DeviceOrder order);

// The sharding annotation of one leaf of a program's value. Axes are base refs already; import
// fails for an annotation that the base mesh cannot express.
struct ShardingConstraint {
  const BaseMesh* mesh = nullptr;
  struct Dim {
    AxisList axes;
    bool open = false;
    int priority = 0;
  };
  std::vector<Dim> dims;
  AxisList replicated;  // explicitly replicated axes
  AxisList unreduced;
  PartialOp unreduced_op = PartialOp::kSum;
  AxisList manual;
  int64_t maximal_device = -1;
  bool unknown = false;   // says nothing
  int64_t shard_as = -1;  // group ids, or -1
  int64_t shard_like = -1;

  bool IsFullyClosed() const;
};

// Padding of a dimension beyond its valid extent.
enum class PadKind : uint8_t { kNone, kUnknown, kFinite, kConstant };
struct DimState {
  int64_t tile = 0;  // T: elements of the dimension that a device's buffer holds
  PadKind pad = PadKind::kNone;
  uint64_t pad_bits = 0;  // element bits, for kConstant
  friend bool operator==(const DimState&, const DimState&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const DimState& d) {
    return H::combine(std::move(h), d.tile, static_cast<int>(d.pad), d.pad_bits);
  }
};

// Shard i of n holds [i*T, (i+1)*T) clamped to [0, D).
struct LocalState {
  const Sharding* sharding = nullptr;
  absl::Span<const DimState> dims;  // interned
};
const LocalState* InternLocalState(Context& context, const Sharding* sharding,
                                   absl::Span<const DimState> dims);
// Canonical tiles, ceil(D/n), with padding unknown where n does not divide D.
const LocalState* CanonicalState(Context& context, const Sharding* sharding, const Shape* global);

inline int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }
// Global shape -> shape of one shard under canonical tiles; null if ranks differ.
const Shape* LocalShape(Context& context, const Shape* global, const Sharding* sharding);
const Shape* LocalShape(Context& context, const Shape* global, const LocalState& state);
// Elements of dimension `dim` that are valid on the device at `position`.
int64_t ValidExtent(const LocalState& state, const Shape* global, int dim, int64_t position);

}  // namespace shardcall

#endif  // SHARDCALL_SHARDING_SHARDING_H_
