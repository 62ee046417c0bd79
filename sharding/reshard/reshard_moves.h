// SPDX-License-Identifier: Apache-2.0
// The moves that a chain of collectives is made of, from one state of a value to the next, within
// one base mesh. The search and the greedy planner share them.
#ifndef SHARDCALL_SHARDING_RESHARD_RESHARD_MOVES_H_
#define SHARDCALL_SHARDING_RESHARD_RESHARD_MOVES_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "shardcall/sharding/reshard/atom_list.h"
#include "shardcall/sharding/reshard/links.h"
#include "shardcall/sharding/reshard/reshard.h"
#include "shardcall/sharding/reshard/retile.h"

namespace shardcall {
inline namespace internal {

class ReshardMoves {
 public:
  // `from` and `to` are of one mesh, with equal manual axes and cuts that nest. `fine`: axes are
  // cut into parts of prime size, so that parts of an axis can move.
  ReshardMoves(Context& context, const Shape* global, const Sharding* from, const Sharding* to,
               bool fine = false);
  virtual ~ReshardMoves() = default;

 protected:
  // Axis parts are cut at every boundary that occurs in either end; the pieces are called atoms. A
  // state has the atoms of each dimension, major to minor, then the partial atoms in increasing
  // order.
  using Lists = absl::InlinedVector<AtomList, 6>;
  // The same as bytes, with '|' between the lists, for tables.
  using State = absl::InlinedVector<uint8_t, 40>;
  // A move without its ends; `atoms` are those of Move::axes.
  struct Step {
    MoveKind kind = MoveKind::kSlice;
    AtomList atoms;
    int dim = -1, dim2 = -1;
    double bytes = 0;
    int exchanges = 0;  // permutes of the halo exchanges that re-tile
  };

  // Takes every move that Expand finds. `next` is the state after it, whose partial atoms may be in
  // any order.
  virtual void Try(Lists next, const Step& step) = 0;
  // Whether to Try a gather of so many bytes.
  virtual bool MayTry(double bytes) const = 0;
  // Tries all moves from a state.
  void Expand(const Lists& l);

  Lists Split(const State& s) const;
  State Join(const Lists& l) const;
  // The move from one state to another.
  Move MakeMove(const Step& step, const State& before, const State& after) const;

  int rank() const { return global_->rank(); }
  int64_t Size(const AtomList& atoms) const {
    int64_t n = 1;
    for (Atom c : atoms) n *= Size(c);
    return n;
  }
  int64_t Size(Atom atom) const { return atoms_[atom].size; }
  // The fewest minor atoms whose sizes are `parts` or more in all.
  AtomList Minor(const AtomList& atoms, int64_t parts) const {
    size_t k = atoms.size();
    for (int64_t size = 1; k > 0 && size < parts; --k) size *= Size(atoms[k - 1]);
    return atoms.substr(k);
  }
  int64_t Tile(int d, const AtomList& atoms) const {
    return atoms.empty() ? global_->dim(d) : CeilDiv(global_->dim(d), Size(atoms));
  }
  int64_t global_dim(int d) const { return global_->dim(d); }
  int BitsOfElement() const { return std::max(1, ElementTypeBits(global_->element_type())); }
  double LocalBits(const Lists& l) const {
    double bits = BitsOfElement();
    for (int d = 0; d < rank(); ++d) bits *= Tile(d, l[d]);
    return bits;
  }
  double LocalBytes(const Lists& l) const { return std::ceil(LocalBits(l) / 8); }
  // Whether `minor` can be all-gathered or sliced in a dimension that stays sharded by `major`
  // without a re-tile.
  bool Nests(int d, const AtomList& major, const AtomList& minor) const {
    return major.empty() || Tile(d, major) == Tile(d, major + minor) * Size(minor);
  }
  // Whether that can be done at all, with a re-tile or without.
  bool Fits(int d, const AtomList& major, const AtomList& minor) const {
    return Nests(d, major, minor) || Size(major) <= kMostRetiledShards;
  }
  // Adds to `step` what it sends to re-tile dimension d, in state `l` and sharded by `major`, for
  // cutting it further by `minor`, or after these were gathered. False if it does not fit.
  bool AddRetile(const Lists& l, int d, const AtomList& major, const AtomList& minor, bool gathered,
                 Step* step) const;
  // The same of a dimension over `atoms` for those after the first `kept`.
  bool Nests(int d, const AtomList& atoms, size_t kept) const {
    return Nests(d, atoms.substr(0, kept), atoms.substr(kept));
  }
  bool Fits(int d, const AtomList& atoms, size_t kept) const {
    return Fits(d, atoms.substr(0, kept), atoms.substr(kept));
  }
  // What a chain costs that has cost `before` up to `step`, which leads to `next`. A small cost for
  // local work and start-up breaks ties between chains of equal bytes.
  double Cost(double before, const Lists& next, const Step& step) const {
    return before + Weighted(step, next) + 1e-3 * LocalBytes(next) + 64 * (1 + step.exchanges);
  }
  // What the step sends, as bytes over links of CostModel::bandwidth.
  double Weighted(const Step& step, const Lists& next) const {
    return !links_.weigh() || step.bytes == 0 ? step.bytes : step.bytes * Weight(step, next);
  }
  double Weight(const Step& step, const Lists& next) const;
  // Bytes of an all-to-all of atoms of another dimension to the minor end of `to` in state `l`.
  double MoveBytes(const Lists& l, int to, const AtomList& atoms) const {
    const double g = Size(atoms);
    return CollectiveBytes(MoveKind::kAllToAll, PaddedBytes(l, to, atoms), g);
  }
  // Local bytes in state `l` if dimension d is padded so that the atoms can cut it.
  double PaddedBytes(const Lists& l, int d, const AtomList& atoms) const {
    const double bits = LocalBits(l);
    if (bits == 0) return 0;  // an empty array, whose tile may be empty, too
    return std::ceil(bits / Tile(d, l[d]) * Tile(d, l[d] + atoms) * Size(atoms) / 8);
  }
  // Bytes that an average device sends in a permute to a state of as many shards.
  double PermuteBytes(const Lists& l, const Lists& next) const;
  // Bytes of an all-reduce of `local` bytes over the atoms.
  double ReduceBytes(const AtomList& atoms, double local) const {
    return AllReduceBytes(from_->partial_op(), global_->element_type(), local, Size(atoms));
  }
  size_t num_atoms() const { return atoms_.size(); }
  static bool Has(const AtomList& s, Atom atom) { return s.contains(atom); }
  static bool IsFree(const Lists& l, Atom atom) {
    return std::none_of(l.begin(), l.end(), [&](const AtomList& s) { return Has(s, atom); });
  }

  Lists start_, target_;

 private:
  using Sizes = absl::InlinedVector<int64_t, 6>;  // by dimension: its shards

  struct Waypoint {
    Lists lists;
    Sizes sizes;
  };

  void MakeAtoms(bool fine);
  Sizes SizesOf(const Lists& l) const;
  Lists ListsOf(const Sharding* s) const;
  AtomList Atoms(absl::Span<const AxisRef> axes) const;
  AxisList Axes(const AtomList& atoms) const;
  const Sharding* ToSharding(const Lists& l) const;
  bool CanTake(const Lists& l, int d, const AtomList& atoms) const;
  void ExpandGathers(const Lists& l);
  void ExpandSlices(const Lists& l);
  void ExpandToPermutedSlice(const Lists& l, int d);
  void ExpandToSize(const Lists& l, int d, const Waypoint& wanted);
  void ExpandPartial(const Lists& l);
  void ExpandToPartial(const Lists& l);
  void ExpandPermutes(const Lists& l);
  void ExpandToTarget(const Lists& l);
  void TryPermute(const Lists& l, const Lists& next);

  Context& context_;
  Links& links_;
  const Shape* const global_;
  const Sharding* const from_;
  const Sharding* const to_;
  const BaseMesh* const mesh_;
  absl::InlinedVector<AxisRef, 8> atoms_;
  // The target, and what one all-to-all makes it of: some minor atoms of a dimension in another.
  std::vector<Waypoint> waypoints_;
  Sizes sizes_;  // of the state that is being expanded
};

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_SHARDING_RESHARD_RESHARD_MOVES_H_
