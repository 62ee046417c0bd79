// SPDX-License-Identifier: Apache-2.0
#include "shardcall/sharding/reshard/reshard_moves.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/algorithm/container.h"
#include "shardcall/sharding/base/status.h"
#include "shardcall/sharding/reshard/reshard_search.h"
#include "shardcall/sharding/reshard/retile.h"

namespace shardcall {
inline namespace internal {
namespace {

constexpr uint8_t kSep = '|', kAtomBase = 0x80;

}  // namespace

ReshardMoves::ReshardMoves(Context& context, const Shape* global, const Sharding* from,
                           const Sharding* to, bool fine)
    : context_(context),
      links_(context.Get<Links>()),
      global_(global),
      from_(from),
      to_(to),
      mesh_(from->mesh()) {
  MakeAtoms(fine);
  start_ = ListsOf(from);
  target_ = ListsOf(to);
  waypoints_.push_back({target_, SizesOf(target_)});
  for (int q = 0; q < rank(); ++q) {
    for (size_t k = 1; k <= target_[q].size(); ++k) {
      for (int d = 0; d < rank(); ++d) {
        if (d == q) continue;
        Lists before = target_;
        before[d] += before[q].substr(before[q].size() - k);
        before[q].resize(before[q].size() - k);
        waypoints_.push_back({before, SizesOf(before)});
      }
    }
  }
}

ReshardMoves::Sizes ReshardMoves::SizesOf(const Lists& l) const {
  Sizes out;
  for (int d = 0; d < rank(); ++d) out.push_back(Size(l[d]));
  return out;
}

ReshardMoves::Lists ReshardMoves::ListsOf(const Sharding* s) const {
  Lists l;
  for (int d = 0; d < rank(); ++d) l.push_back(Atoms(s->dim(d)));
  l.push_back(Atoms(s->partial()));
  std::sort(l.back().begin(), l.back().end());
  return l;
}

void ReshardMoves::MakeAtoms(bool fine) {
  absl::InlinedVector<absl::InlinedVector<int64_t, 6>, 4> cuts(mesh_->num_axes());
  for (const Sharding* s : {from_, to_}) {
    auto add = [&](absl::Span<const AxisRef> axes) {
      for (AxisRef a : axes) {
        cuts[a.axis].push_back(a.pre_size);
        cuts[a.axis].push_back(int64_t{a.pre_size} * a.size);
      }
    };
    for (int d = 0; d < s->rank(); ++d) add(s->dim(d));
    add(s->partial());
  }
  for (int axis = 0; axis < mesh_->num_axes(); ++axis) {
    auto& c = cuts[axis];
    std::sort(c.begin(), c.end());
    c.erase(std::unique(c.begin(), c.end()), c.end());
    for (size_t i = 0; i + 1 < c.size(); ++i) {
      int64_t pre = c[i], rest = c[i + 1] / c[i];
      for (int64_t p = 2; fine && p * p <= rest;) {
        if (rest % p != 0) {
          ++p;
          continue;
        }
        atoms_.push_back(
            {static_cast<uint16_t>(axis), static_cast<uint32_t>(pre), static_cast<uint32_t>(p)});
        pre *= p;
        rest /= p;
      }
      atoms_.push_back(
          {static_cast<uint16_t>(axis), static_cast<uint32_t>(pre), static_cast<uint32_t>(rest)});
    }
  }
  SHARDCALL_CHECK(atoms_.size() <= AtomList::kCapacity);
}

AtomList ReshardMoves::Atoms(absl::Span<const AxisRef> axes) const {
  AtomList out;
  for (AxisRef a : axes) {
    for (size_t i = 0; i < atoms_.size(); ++i) {
      const AxisRef& t = atoms_[i];
      if (t.axis == a.axis && t.pre_size >= a.pre_size &&
          int64_t{t.pre_size} * t.size <= int64_t{a.pre_size} * a.size) {
        out.push_back(static_cast<Atom>(i));
      }
    }
  }
  return out;
}

AxisList ReshardMoves::Axes(const AtomList& atoms) const {
  AxisList raw;
  for (Atom c : atoms) raw.push_back(atoms_[c]);
  return Canonical(*mesh_, raw);
}

double ReshardMoves::Weight(const Step& step, const Lists& next) const {
  const Collective c = CollectiveOf(step.kind);
  if (c != Collective::kPermute) return links_.Of(*mesh_, Axes(step.atoms), c).weight;
  double weight = 0;
  for (int d = 0; d < rank(); ++d) {
    if (next[d].empty()) continue;
    weight = std::max(weight, links_.OfPermute(*mesh_, Axes(next[d])).weight);
  }
  return weight > 0 ? weight : 1;
}

ReshardMoves::Lists ReshardMoves::Split(const State& s) const {
  Lists out(1);
  for (uint8_t c : s) {
    if (c == kSep) {
      out.emplace_back();
    } else {
      out.back().push_back(c - kAtomBase);
    }
  }
  return out;
}

ReshardMoves::State ReshardMoves::Join(const Lists& l) const {
  State s;
  for (size_t i = 0; i < l.size(); ++i) {
    if (i) s.push_back(kSep);
    for (Atom c : l[i]) s.push_back(c + kAtomBase);
  }
  return s;
}

const Sharding* ReshardMoves::ToSharding(const Lists& l) const {
  ShardingBuilder b(mesh_, rank());
  for (int d = 0; d < rank(); ++d) b.dims[d] = Axes(l[d]);
  b.partial = Axes(l[rank()]);
  b.partial_op = from_->partial().empty() ? to_->partial_op() : from_->partial_op();
  b.manual.assign(from_->manual().begin(), from_->manual().end());
  return b.Intern(context_);
}

Move ReshardMoves::MakeMove(const Step& step, const State& before, const State& after) const {
  return {step.kind,
          Axes(step.atoms),
          step.dim,
          step.dim2,
          ToSharding(Split(before)),
          ToSharding(Split(after)),
          step.bytes,
          step.exchanges};
}

bool ReshardMoves::AddRetile(const Lists& l, int d, const AtomList& major, const AtomList& minor,
                             bool gathered, Step* step) const {
  if (Nests(d, major, minor)) return true;
  if (!Fits(d, major, minor)) return false;
  const int64_t coarse = Tile(d, major), fine = Tile(d, major + minor) * Size(minor);
  const RetileCost cost =
      CostOfRetile(context_, global_dim(d), Size(major), gathered ? fine : coarse,
                   gathered ? coarse : fine, LocalBits(l) / static_cast<double>(Tile(d, l[d])));
  step->bytes += cost.sent;
  step->exchanges += cost.collectives;
  return true;
}

// Whether the atoms, which shard another dimension, can shard this one with little padding.
bool ReshardMoves::CanTake(const Lists& l, int d, const AtomList& atoms) const {
  const int64_t shards = sizes_[d] * Size(atoms), size = global_dim(d);
  constexpr int64_t kLittle = 8;
  return kLittle * (CeilDiv(size, shards) * shards - size) <= size && Fits(d, l[d], atoms);
}

void ReshardMoves::ExpandGathers(const Lists& l) {
  const double local = LocalBytes(l);
  for (int d = 0; d < rank(); ++d) {
    for (size_t k = 1; k <= l[d].size(); ++k) {
      const AtomList major = l[d].substr(0, l[d].size() - k);
      const AtomList minor = l[d].substr(l[d].size() - k);
      const double g = Size(minor);
      Lists next = l;
      next[d] = major;
      Step gather{MoveKind::kAllGather, minor, d, -1,
                  CollectiveBytes(MoveKind::kAllGather, local, g)};
      if (MayTry(gather.bytes) && AddRetile(next, d, major, minor, /*gathered=*/true, &gather)) {
        Try(next, gather);
      }
      for (int q = 0; q < rank(); ++q) {
        if (q == d) continue;
        const bool to_place =
            std::all_of(minor.begin(), minor.end(), [&](Atom c) { return Has(target_[q], c); });
        if (!to_place &&
            !(GathersPadding(global_dim(d), sizes_[d], gather.bytes) && CanTake(l, q, minor))) {
          continue;
        }
        Lists moved = next;
        moved[q] += minor;
        Step move{MoveKind::kAllToAll, minor, d, q, MoveBytes(l, q, minor)};
        if (AddRetile(l, q, l[q], minor, /*gathered=*/false, &move) &&
            AddRetile(moved, d, major, minor, /*gathered=*/true, &move)) {
          Try(moved, move);
        }
      }
    }
  }
}

void ReshardMoves::ExpandSlices(const Lists& l) {
  for (const Waypoint& wanted : waypoints_) {
    if (!l[rank()].empty() || !target_[rank()].empty()) break;
    bool fewer = true;  // no dimension has to be gathered
    for (int d = 0; d < rank(); ++d) fewer = fewer && wanted.sizes[d] % sizes_[d] == 0;
    for (int d = 0; fewer && d < rank(); ++d) ExpandToSize(l, d, wanted);
  }
  for (int d = 0; d < rank(); ++d) {
    if (!target_[d].StartsWith(l[d])) {
      ExpandToPermutedSlice(l, d);
      continue;
    }
    for (size_t k = 1; l[d].size() + k <= target_[d].size(); ++k) {
      const AtomList minor = target_[d].substr(l[d].size(), k);
      if (!IsFree(l, minor.back())) break;
      Step slice{MoveKind::kSlice, minor, d};
      if (!AddRetile(l, d, l[d], minor, /*gathered=*/false, &slice)) continue;
      Lists next = l;
      next[d] += minor;
      Try(next, slice);
    }
  }
}

// The dimension has other atoms than the target, or other ones come before them there. Cut by all
// that lack, in whatever order, it sends less in the permute that orders them, and in the gather
// that drops those which the target does not have.
void ReshardMoves::ExpandToPermutedSlice(const Lists& l, int d) {
  AtomList minor;
  for (Atom c : target_[d]) {
    if (Has(l[d], c)) continue;
    if (!IsFree(l, c)) return;
    minor.push_back(c);
  }
  Step slice{MoveKind::kSlice, minor, d};
  if (minor.empty() || !AddRetile(l, d, l[d], minor, /*gathered=*/false, &slice)) return;
  Lists next = l;
  next[d] += minor;
  Try(next, slice);
}

// Cut by atoms that are free, whichever they are, into as many parts as a waypoint has: one permute
// of such parts then brings each to its place there. From [{}, b] to [b, a] with b = 2 and a = 4,
// the halves of a cut both dimensions first, and no more than the shards of the target move.
void ReshardMoves::ExpandToSize(const Lists& l, int d, const Waypoint& wanted) {
  const int64_t have = sizes_[d], want = wanted.sizes[d];
  if (have >= want || want % have != 0) return;
  AtomList minor;
  int64_t rest = want / have;
  const auto take = [&](const AtomList& atoms) {
    for (Atom c : atoms) {
      const int64_t size = Size(c);
      if (size > rest || rest % size != 0 || Has(minor, c) || !IsFree(l, c)) continue;
      minor.push_back(c);
      rest /= size;
    }
  };
  // First those that stay at their place.
  take(Minor(wanted.lists[d], rest));
  take(wanted.lists[d]);
  for (int e = 0; e < rank(); ++e) take(target_[e]);
  for (int e = 0; e < rank(); ++e) take(start_[e]);
  Step slice{MoveKind::kSlice, minor, d};
  if (rest > 1 || !AddRetile(l, d, l[d], minor, /*gathered=*/false, &slice)) return;
  Lists next = l;
  next[d] += minor;
  Try(next, slice);
}

void ReshardMoves::ExpandPartial(const Lists& l) {
  const AtomList& partial = l[rank()];
  const double local = LocalBytes(l);
  AtomList rest, drop;
  for (Atom c : partial) {
    (Has(target_[rank()], c) ? rest : drop).push_back(c);
  }
  if (!drop.empty()) {
    Lists next = l;
    next[rank()] = rest;
    Try(next, {MoveKind::kAllReduce, drop, -1, -1, ReduceBytes(drop, local)});
  }
  // All-reduce one atom, so that the others can become a reduce-scatter, or because a reduction
  // that gathers parts is cheaper one axis at a time.
  if (drop.size() > 1) {
    for (Atom c : drop) {
      Lists next = l;
      next[rank()].erase(next[rank()].find(c));
      const AtomList one{c};
      Try(next, {MoveKind::kAllReduce, one, -1, -1, ReduceBytes(one, local)});
    }
  }
  for (int d = 0; d < rank(); ++d) {
    if (!target_[d].StartsWith(l[d])) continue;
    for (size_t k = 1; l[d].size() + k <= target_[d].size(); ++k) {
      const AtomList minor = target_[d].substr(l[d].size(), k);
      if (!Has(drop, minor.back())) break;
      const double g = Size(minor);
      Step scatter{MoveKind::kReduceScatter, minor, d, -1,
                   CollectiveBytes(MoveKind::kReduceScatter, PaddedBytes(l, d, minor), g)};
      if (!AddRetile(l, d, l[d], minor, /*gathered=*/false, &scatter)) continue;
      Lists next = l;
      next[d] += minor;
      for (Atom c : minor) next[rank()].erase(next[rank()].find(c));
      Try(next, scatter);
    }
  }
}

void ReshardMoves::ExpandToPartial(const Lists& l) {
  const AtomList& wanted = target_[rank()];
  AtomList made;
  for (Atom c : wanted) {
    if (IsFree(l, c)) made.push_back(c);
  }
  if (!made.empty()) {
    Lists next = l;
    next[rank()] += made;
    Try(next, {MoveKind::kDropPartial, made, -1, -1, 0});
  }
  for (int d = 0; d < rank(); ++d) {
    for (size_t k = 1; k <= l[d].size(); ++k) {
      const AtomList major = l[d].substr(0, l[d].size() - k);
      const AtomList minor = l[d].substr(l[d].size() - k);
      if (!Has(wanted, minor.front())) break;
      if (!Nests(d, major, minor)) continue;
      Lists next = l;
      next[d] = major;
      next[rank()] += minor;
      Try(next, {MoveKind::kPadPartial, minor, d, -1, 0});
    }
  }
}

// Devices keep their shard whose coordinates are equal along every two atoms of which one takes the
// place of the other.
double ReshardMoves::PermuteBytes(const Lists& l, const Lists& next) const {
  absl::InlinedVector<AtomList, 4> groups;  // of atoms that agree
  double share = 1;
  for (int d = 0; d < rank(); ++d) {
    size_t i = l[d].size(), j = next[d].size();
    while (i > 0 && j > 0) {
      const Atom a = l[d][--i], b = next[d][--j];
      if (Size(a) != Size(b)) return LocalBytes(l);  // not known in atoms
      if (a == b) continue;
      const auto with = [&](Atom c) {
        return absl::c_find_if(groups, [&](const AtomList& g) { return Has(g, c); });
      };
      auto of_a = with(a), of_b = with(b);
      if (of_a != groups.end() && of_a == of_b) continue;
      share /= static_cast<double>(Size(a));
      if (of_a == groups.end() && of_b == groups.end()) {
        groups.push_back({a, b});
      } else if (of_a == groups.end()) {
        of_b->push_back(a);
      } else if (of_b == groups.end()) {
        of_a->push_back(b);
      } else {
        *of_a += *of_b;
        groups.erase(of_b);
      }
    }
  }
  return LocalBytes(l) * (1 - share);
}

void ReshardMoves::TryPermute(const Lists& l, const Lists& next) {
  if (next != l) Try(next, {MoveKind::kPermute, {}, -1, -1, PermuteBytes(l, next)});
}

// To waypoints, and to the target with more atoms in some dimensions, which are then gathered.
void ReshardMoves::ExpandToTarget(const Lists& l) {
  if (!l[rank()].empty() || !target_[rank()].empty()) return;
  for (const Waypoint& waypoint : waypoints_) {
    if (waypoint.sizes == sizes_) TryPermute(l, waypoint.lists);
  }
  Lists larger = target_;
  for (int d = 0; d < rank(); ++d) {
    const int64_t have = sizes_[d], want = waypoints_[0].sizes[d];
    if (have <= want || have % want != 0) continue;
    for (Atom c : Minor(l[d], have / want)) {
      if (IsFree(larger, c)) larger[d].push_back(c);
    }
  }
  if (larger != target_ && SizesOf(larger) == sizes_) TryPermute(l, larger);
}

void ReshardMoves::ExpandPermutes(const Lists& l) {
  const double local = LocalBytes(l);
  bool any = false;
  for (int d = 0; d < rank(); ++d) any = any || !l[d].empty();
  if (!any) return;
  ExpandToTarget(l);
  for (int d = 0; d < rank(); ++d) {
    if (l[d].size() < 2 || !l[rank()].empty()) continue;
    for (size_t i = 0; i + 1 < l[d].size(); ++i) {
      Lists next = l;
      const Atom c = next[d][i];
      next[d].erase(i);
      next[d].push_back(c);
      Try(next, {MoveKind::kPermute, {}, -1, -1, local});
    }
    // The target's atoms first, so that a gather drops the others.
    Lists next = l;
    absl::c_stable_sort(next[d],
                        [&](Atom a, Atom b) { return target_[d].find(a) < target_[d].find(b); });
    if (next[d] != l[d]) Try(next, {MoveKind::kPermute, {}, -1, -1, local});
  }
}

void ReshardMoves::Expand(const Lists& l) {
  sizes_ = SizesOf(l);
  ExpandSlices(l);
  ExpandGathers(l);
  ExpandPartial(l);
  ExpandToPartial(l);
  ExpandPermutes(l);
}

}  // namespace internal
}  // namespace shardcall
