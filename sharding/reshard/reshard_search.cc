// SPDX-License-Identifier: Apache-2.0
#include "shardcall/sharding/reshard/reshard_search.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "shardcall/sharding/base/status.h"
#include "shardcall/sharding/reshard/reshard_completion.h"

namespace shardcall {
inline namespace internal {
namespace {

// Of so many states that are expanded first the chains are completed.
constexpr int kCompleted = 4;

class Search final : public ReshardCompletion {
 public:
  Search(Context& context, const Shape* global, const Sharding* from, const Sharding* to, bool fine)
      : ReshardCompletion(context, global, from, to, fine),
        queue_(context.Get<Scratch>().queue),
        best_(context.Get<Scratch>().best) {
    queue_.clear();
    best_.clear();
  }

  bool Run(int64_t max_states, double* cost, std::vector<Move>* moves);
  double BytesLackingAtStart() const { return may_hold_identities_ ? 0 : BytesLacking(start_); }

 private:
  struct Node {
    double bound;  // of chains through it
    double cost;
    State state;
    // Smallest bound first, then by state.
    bool operator<(const Node& o) const {
      return bound != o.bound ? bound > o.bound : state > o.state;
    }
  };
  struct Reached {
    State previous;
    Step step;
    double cost = 0;
  };
  // Storage that successive searches in one Context reuse.
  struct Scratch {
    std::vector<Node> queue;  // a heap
    absl::flat_hash_map<State, Reached> best;
  };

  void Try(Lists next, const Step& step) override;
  bool MayTry(double bytes) const override { return at_.cost + bytes < goal_cost_; }
  // A lower bound of what is yet to be sent from state `l`, which is not the goal. Every chain ends
  // in a move to the goal, which costs something itself.
  double Left(const Lists& l) const {
    return (may_hold_identities_ ? 0 : BytesLacking(l)) + goal_bytes_ + 64;
  }
  // Keeps the chain through `l`, the state that is being expanded, that simple rules complete, if
  // it is the cheapest one so far. It may begin with a permute that puts all axes in order, of
  // which Expand has few.
  void Finish(const Lists& l);
  void Push(Node node) {
    queue_.push_back(std::move(node));
    std::push_heap(queue_.begin(), queue_.end());
  }

  // What a device needs in the goal and does not hold in state `l`, at least: each byte of it is
  // sent by another device. Two tiles of a dimension share the smaller of them at most; on average
  // over the devices, these tiles are of one place only where the coordinates are equal along atoms
  // that stand at one place of them. Of a sum a device lacks all: there are parts of it elsewhere.
  double BytesLacking(const Lists& l) const {
    const double element = static_cast<double>(BitsOfElement()) / 8;
    double need = element, average = element, held = element;
    for (int d = 0; d < rank(); ++d) {
      const int64_t want = Tile(d, target_[d]);
      need *= static_cast<double>(want);
      average *= static_cast<double>(global_dim(d)) / static_cast<double>(Size(target_[d]));
      held *= static_cast<double>(std::min(Tile(d, l[d]), want));
    }
    if (!l[rank()].empty()) return std::max(need - held, average);
    return std::max(need - held, average - held * ShareInPlace(l));
  }
  // Of the devices those whose coordinates are equal along every two atoms that stand at one place
  // of a dimension in `l` and in the goal, where the tiles of these lie in each other.
  double ShareInPlace(const Lists& l) const;
  // Whether each tile of the one that has more of them lies in a tile of the other.
  bool Nest(int d, const AtomList& a, const AtomList& b) const {
    const int64_t many = std::max(Size(a), Size(b)), few = std::min(Size(a), Size(b));
    return many % few == 0 &&
           CeilDiv(global_dim(d), few) == CeilDiv(global_dim(d), many) * (many / few);
  }

  Node at_;  // the node that is being expanded
  State goal_;
  // A lower bound of the cost of the last move, and the cost of the cheapest chain so far.
  double goal_bytes_ = 0, goal_cost_ = std::numeric_limits<double>::infinity();
  // Where the goal is partial, a device may have the identity in place of what it lacks.
  bool may_hold_identities_ = false;
  std::vector<Node>& queue_;
  absl::flat_hash_map<State, Reached>& best_;
};

double Search::ShareInPlace(const Lists& l) const {
  double share = 1;
  Atom equal[AtomList::kCapacity];  // by atom: one whose coordinate is the same, or itself
  bool any = false;
  const auto first = [&](Atom a) {
    while (equal[a] != a) a = equal[a];
    return a;
  };
  for (int d = 0; d < rank(); ++d) {
    const AtomList& is = l[d];
    const AtomList& wanted = target_[d];
    if (is == wanted || is.empty() || wanted.empty() || !Nest(d, is, wanted)) continue;
    for (size_t k = 0; k < std::min(is.size(), wanted.size()); ++k) {
      if (is[k] == wanted[k]) continue;
      if (Size(is[k]) != Size(wanted[k])) break;  // what follows stands at other places
      if (!any) std::iota(equal, equal + num_atoms(), Atom{0});
      any = true;
      const Atom a = first(is[k]), b = first(wanted[k]);
      if (a == b) continue;
      equal[a] = b;
      share /= static_cast<double>(Size(a));
    }
  }
  return share;
}

void Search::Try(Lists next, const Step& step) {
  const double cost = Cost(at_.cost, next, step);
  if (cost >= goal_cost_) return;
  std::sort(next[rank()].begin(), next[rank()].end());
  State state = Join(next);
  if (state == goal_) {
    goal_cost_ = cost;
    best_[state] = {at_.state, step, cost};
    return;
  }
  const double bound = cost + Left(next);
  if (bound >= goal_cost_) return;
  auto [it, fresh] = best_.try_emplace(state);
  if (!fresh && it->second.cost <= cost) return;
  it->second = {at_.state, step, cost};
  Push({bound, cost, std::move(state)});
}

void Search::Finish(const Lists& l) {
  State before = at_.state;
  for (Link& link : Complete(l, at_.cost, goal_cost_)) {
    auto [it, fresh] = best_.try_emplace(link.after);
    if (!fresh && it->second.cost <= link.cost) return;  // the chain to here was known
    it->second = {before, link.step, link.cost};
    if (link.after == goal_) {
      goal_cost_ = link.cost;
    } else {
      Push({link.cost + Left(Split(link.after)), link.cost, link.after});
    }
    before = std::move(link.after);
  }
}

bool Search::Run(int64_t max_states, double* cost, std::vector<Move>* moves) {
  const State start = Join(start_);
  goal_ = Join(target_);
  goal_bytes_ = 1e-3 * LocalBytes(target_);
  may_hold_identities_ = !target_[rank()].empty();
  goal_cost_ = *cost;
  best_[start] = Reached{};
  Push({0, 0, start});
  int completed = 0;
  while (!queue_.empty()) {
    std::pop_heap(queue_.begin(), queue_.end());
    at_ = std::move(queue_.back());
    queue_.pop_back();
    if (at_.bound >= goal_cost_) break;
    if (at_.cost > best_.find(at_.state)->second.cost) continue;
    if (static_cast<int64_t>(best_.size()) > max_states) return false;
    const Lists lists = Split(at_.state);
    if (completed < kCompleted) {
      ++completed;
      Finish(lists);
    }
    Expand(lists);
  }
  if (goal_cost_ == *cost) {  // gathering all, then cutting, always leads there
    SHARDCALL_CHECK(*cost < std::numeric_limits<double>::infinity());
    return true;
  }
  *cost = goal_cost_;
  absl::InlinedVector<Move, 4> back;
  for (State s = goal_; s != start;) {
    const Reached& reached = best_[s];
    back.push_back(MakeMove(reached.step, reached.previous, s));
    s = reached.previous;
  }
  moves->insert(moves->end(), back.rbegin(), back.rend());
  return true;
}

}  // namespace

bool SearchReshard(Context& context, const Shape* global, const Sharding* from, const Sharding* to,
                   std::vector<Move>* moves, int64_t max_states, bool fine, double* cost,
                   double* lacking) {
  if (from == to) return true;
  double any = std::numeric_limits<double>::infinity();
  Search search(context, global, from, to, fine);
  const bool found = search.Run(max_states, cost == nullptr ? &any : cost, moves);
  if (lacking != nullptr) *lacking = search.BytesLackingAtStart();
  return found;
}

}  // namespace internal
}  // namespace shardcall
