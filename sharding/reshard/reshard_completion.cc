// SPDX-License-Identifier: Apache-2.0
#include "shardcall/sharding/reshard/reshard_completion.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {

size_t ReshardCompletion::Kept(int d, const AtomList& atoms) const {
  const AtomList& want = target_[d];
  const auto differ = std::mismatch(atoms.begin(), atoms.end(), want.begin(), want.end());
  size_t kept = differ.first - atoms.begin();
  while (kept > 0 && !(Fits(d, atoms, kept) && Fits(d, want, kept))) --kept;
  return kept;
}

void ReshardCompletion::Add(const Lists& next, Step step) {
  cost_ = Cost(cost_, next, step);
  at_ = next;
  std::sort(at_[rank()].begin(), at_[rank()].end());
  chain_.push_back({std::move(step), Join(at_), cost_});
}

std::vector<ReshardCompletion::Link> ReshardCompletion::Complete(const Lists& l, double cost,
                                                                 double limit) {
  at_ = l;
  cost_ = cost;
  arranged_ = false;
  chain_.clear();
  ReducePartial();
  while (cost_ < limit && !AreDimsDone()) {
    if (!Slice() && !MoveToPlace() && !Permute() && !PadToPartial()) GatherFewest();
  }
  if (cost_ >= limit) return {};
  DropToPartial();
  if (cost_ >= limit) return {};
  return std::move(chain_);
}

void ReshardCompletion::ReducePartial() {
  AtomList kept, reduced;
  for (Atom c : at_[rank()]) (Has(target_[rank()], c) ? kept : reduced).push_back(c);
  if (reduced.empty()) return;
  Lists next = at_;
  next[rank()] = kept;
  Add(next, {MoveKind::kAllReduce, reduced, -1, -1, ReduceBytes(reduced, LocalBytes(at_))});
}

void ReshardCompletion::DropToPartial() {
  AtomList made;
  for (Atom c : target_[rank()]) {
    if (!Has(at_[rank()], c)) made.push_back(c);
  }
  if (made.empty()) return;
  Lists next = at_;
  next[rank()] += made;
  Add(next, {MoveKind::kDropPartial, made, -1, -1, 0});
}

bool ReshardCompletion::SameSizes() const {
  bool same = at_[rank()].empty() && target_[rank()].empty();
  for (int d = 0; same && d < rank(); ++d) same = Size(at_[d]) == Size(target_[d]);
  return same;
}

// The atoms that follow in the target of a dimension, as far as they are free.
bool ReshardCompletion::Slice() {
  for (int d = 0; d < rank(); ++d) {
    const AtomList& want = target_[d];
    const size_t have = at_[d].size();
    if (Kept(d, at_[d]) != have) continue;
    size_t end = have;
    while (end < want.size() && IsFree(at_, want[end])) ++end;
    const AtomList cut = want.substr(0, end), atoms = cut.substr(have);
    // What could not stay when the rest follows would only be gathered again.
    if (atoms.empty() || Kept(d, cut) != end) continue;
    Step slice{MoveKind::kSlice, atoms, d};
    if (!AddRetile(at_, d, at_[d], atoms, /*gathered=*/false, &slice)) continue;
    Lists next = at_;
    next[d] += atoms;
    Add(next, std::move(slice));
    return true;
  }
  return false;
}

// As many minor atoms of one dimension as follow in the target of another one.
bool ReshardCompletion::MoveToPlace() {
  for (int d = 0; d < rank(); ++d) {
    for (size_t kept = Kept(d, at_[d]); kept < at_[d].size(); ++kept) {
      const AtomList atoms = at_[d].substr(kept);
      for (int q = 0; q < rank(); ++q) {
        const AtomList moved = at_[q] + atoms;
        if (q == d || !target_[q].StartsWith(moved) || Kept(q, moved) != moved.size()) continue;
        Lists next = at_;
        next[d].resize(kept);
        next[q] = moved;
        Step move{MoveKind::kAllToAll, atoms, d, q, MoveBytes(at_, q, atoms)};
        if (!AddRetile(at_, q, at_[q], atoms, /*gathered=*/false, &move) ||
            !AddRetile(next, d, next[d], atoms, /*gathered=*/true, &move)) {
          continue;
        }
        Add(next, std::move(move));
        return true;
      }
    }
  }
  return false;
}

bool ReshardCompletion::Permute() {
  if (SameSizes()) {
    Add(target_, {MoveKind::kPermute, {}, -1, -1, PermuteBytes(at_, target_)});
    return true;
  }
  if (arranged_ || !at_[rank()].empty()) return false;
  arranged_ = true;
  Lists next;
  if (!Arrange(&next) || next == at_) return false;
  Add(next, {MoveKind::kPermute, {}, -1, -1, PermuteBytes(at_, next)});
  return true;
}

bool ReshardCompletion::Arrange(Lists* arranged) const {
  Lists& out = *arranged;
  out = Lists(at_.size());
  // What each dimension has room for, by size of the atoms.
  std::vector<std::vector<int64_t>> room(rank());
  for (int d = 0; d < rank(); ++d) {
    for (Atom c : at_[d]) room[d].push_back(Size(c));
  }
  const auto take = [&](int d, Atom c) {
    const auto found = std::find(room[d].begin(), room[d].end(), Size(c));
    if (found == room[d].end()) return false;
    room[d].erase(found);
    out[d].push_back(c);
    return true;
  };
  // Those that wait, from the lowest to the highest: first what is gathered or becomes partial at
  // last, then the atoms of each dimension from the last to the first, in pieces that can move
  // together.
  std::vector<AtomList> pieces;
  for (int d = 0; d < rank(); ++d) {
    for (Atom c : at_[d]) {
      if (IsFree(target_, c) || Has(target_[rank()], c)) pieces.push_back(AtomList{c});
    }
  }
  for (int q = 0; q < rank(); ++q) {
    const AtomList& want = target_[q];
    size_t placed = 0;
    while (placed < want.size() && !IsFree(at_, want[placed]) && take(q, want[placed])) ++placed;
    std::vector<AtomList> waiting;
    for (bool follows = false; placed < want.size(); ++placed) {
      const bool free = IsFree(at_, want[placed]);
      if (!free && follows) {
        waiting.back().push_back(want[placed]);
      } else if (!free) {
        waiting.push_back(AtomList{want[placed]});
      }
      follows = !free;
    }
    pieces.insert(pieces.end(), waiting.rbegin(), waiting.rend());
  }
  // Each piece into one dimension, if one has room for all of it, else from its end in parts.
  for (AtomList& piece : pieces) {
    while (!piece.empty()) {
      size_t most = 0;
      int best = -1;
      for (int d = 0; d < rank(); ++d) {
        std::vector<int64_t> left = room[d];
        size_t fits = 0;
        for (; fits < piece.size(); ++fits) {
          const Atom c = piece[piece.size() - 1 - fits];
          const auto found = std::find(left.begin(), left.end(), Size(c));
          if (found == left.end()) break;
          left.erase(found);
        }
        if (fits > most) most = fits, best = d;
      }
      if (best < 0) return false;
      for (Atom c : piece.substr(piece.size() - most)) take(best, c);
      piece.resize(piece.size() - most);
    }
  }
  return true;
}

bool ReshardCompletion::PadToPartial() {
  for (int d = 0; d < rank(); ++d) {
    size_t kept = at_[d].size();
    while (kept > 0 && Has(target_[rank()], at_[d][kept - 1])) --kept;
    while (kept < at_[d].size() && !Nests(d, at_[d], kept)) ++kept;
    if (kept == at_[d].size()) continue;
    const AtomList atoms = at_[d].substr(kept);
    Lists next = at_;
    next[d].resize(kept);
    next[rank()] += atoms;
    Add(next, {MoveKind::kPadPartial, atoms, d, -1, 0});
    return true;
  }
  return false;
}

void ReshardCompletion::GatherFewest() {
  int cheapest = -1;
  int64_t least = 0;
  for (int d = 0; d < rank(); ++d) {
    const int64_t size = Size(at_[d].substr(Kept(d, at_[d])));
    if (size > 1 && (cheapest < 0 || size < least)) cheapest = d, least = size;
  }
  SHARDCALL_CHECK(cheapest >= 0);  // else all that is missing could be sliced
  const size_t kept = Kept(cheapest, at_[cheapest]);
  const AtomList atoms = at_[cheapest].substr(kept);
  Lists next = at_;
  next[cheapest].resize(kept);
  Step gather{MoveKind::kAllGather, atoms, cheapest, -1,
              CollectiveBytes(MoveKind::kAllGather, LocalBytes(at_), static_cast<double>(least))};
  const bool fits = AddRetile(next, cheapest, next[cheapest], atoms, /*gathered=*/true, &gather);
  SHARDCALL_CHECK(fits);  // what is kept was chosen so
  Add(next, std::move(gather));
}

}  // namespace internal
}  // namespace shardcall
