// SPDX-License-Identifier: Apache-2.0
// The planner for reshards that would take the search too many states.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "shardcall/sharding/base/status.h"
#include "shardcall/sharding/reshard/reshard_completion.h"
#include "shardcall/sharding/reshard/reshard_search.h"

namespace shardcall {
inline namespace internal {
namespace {

// A plan tries about this many moves. From it follows how many states of one length are kept: in
// small meshes nearly all, else at least `kNarrowest`.
constexpr size_t kMoves = 20'000;
constexpr size_t kNarrowest = 8;

class Greedy final : public ReshardCompletion {
 public:
  using ReshardCompletion::ReshardCompletion;
  void Run(std::vector<Move>* moves);

 private:
  // A state at the end of a chain.
  struct Reached {
    State state;
    Step step;          // the last move of the chain
    int previous = -1;  // in `reached_`
    double cost = 0, score = 0;
  };

  void Try(Lists next, const Step& step) override;
  bool MayTry(double bytes) const override { return reached_[at_].cost + bytes < goal_.cost; }
  // Completes the chain to `reached_[k]`, if that is the cheapest one so far.
  void Finish(int k);
  // About what the rest of a chain costs from `l`, to choose the states that are kept; no bound.
  double Remaining(const Lists& l) const;
  // Of that, bringing the atoms of the dimensions to their places, while a device holds `local`
  // bytes.
  double RemainingMoves(const Lists& l, double local) const;

  int at_ = 0;  // the state that is being expanded
  std::vector<Reached> reached_, found_;
  absl::flat_hash_map<State, double> costs_;  // the cheapest chain to a state
  Reached goal_;
};

void Greedy::Try(Lists next, const Step& step) {
  const double cost = Cost(reached_[at_].cost, next, step);
  if (cost >= goal_.cost) return;
  std::sort(next[rank()].begin(), next[rank()].end());
  Reached reached{Join(next), step, at_, cost, 0};
  if (reached.state == goal_.state) {
    goal_ = std::move(reached);
    return;
  }
  auto [it, fresh] = costs_.try_emplace(reached.state, cost);
  if (!fresh && it->second <= cost) return;
  it->second = cost;
  reached.score = cost + Remaining(next);
  found_.push_back(std::move(reached));
}

void Greedy::Finish(int k) {
  const double cost = reached_[k].cost;
  for (Link& link : Complete(Split(reached_[k].state), cost, goal_.cost)) {
    reached_.push_back({std::move(link.after), std::move(link.step), k, link.cost, 0});
    k = static_cast<int>(reached_.size()) - 1;
    goal_ = reached_.back();
  }
}

double Greedy::Remaining(const Lists& l) const {
  double local = LocalBytes(l), cost = 0;
  AtomList reduced, scattered;
  for (Atom c : l[rank()]) {
    if (Has(target_[rank()], c)) continue;
    (IsFree(target_, c) ? reduced : scattered).push_back(c);
  }
  if (!scattered.empty()) {
    const double g = static_cast<double>(Size(scattered));
    cost += CollectiveBytes(MoveKind::kReduceScatter, local, g);
    local /= g;
  }
  if (!reduced.empty()) cost += ReduceBytes(reduced, local);
  return cost + RemainingMoves(l, local);
}

// Atoms that have to change dimension are counted one all-to-all each, or, if that is less, the
// shards that a dimension has too many, and a permute. What is in disorder needs a permute. A
// dimension that the shards do not divide is gathered, and so is what the target has nowhere.
double Greedy::RemainingMoves(const Lists& l, double local) const {
  double movers = 0, excess = 0, gathers = 0, superfluous = 1;
  bool disorder = false, same = l[rank()].empty() && target_[rank()].empty();
  for (int d = 0; d < rank(); ++d) {
    const AtomList& want = target_[d];
    if (l[d] == want) continue;
    same = same && Size(l[d]) == Size(want);
    if (global_dim(d) % Size(l[d]) != 0 || global_dim(d) % Size(want) != 0) {
      gathers += local * static_cast<double>(Size(l[d].substr(Kept(d, l[d]))) - 1);
      continue;
    }
    double more = 1;      // shards, over those by the target's atoms that are in some dimension
    bool slices = false;  // an atom must be sliced into this dimension
    for (Atom c : want) {
      if (IsFree(l, c)) {
        slices = true;
      } else {
        more /= static_cast<double>(Size(c));
      }
    }
    double largest = 1, wrong = 1;
    AtomList stay;
    for (Atom c : l[d]) {
      const double size = static_cast<double>(Size(c));
      if (IsFree(target_, c)) {
        superfluous *= size;
        continue;
      }
      stay.push_back(c);
      more *= size;
      largest = std::max(largest, size);
      if (!Has(want, c)) movers += local * (1 - 1 / size);
      if (!want.StartsWith(stay)) wrong *= size;
    }
    for (; more > 1; more /= largest) excess += local * (1 - 1 / largest);
    disorder = disorder || wrong > 1;
    if (slices) gathers += local * (wrong - 1);
  }
  if (same) return local;
  gathers += LocalBytes(target_) * (1 - 1 / superfluous);
  return gathers + std::min(movers + (disorder ? local : 0), excess + (movers > 0 ? local : 0));
}

void Greedy::Run(std::vector<Move>* moves) {
  const State start = Join(start_);
  goal_.state = Join(target_);
  goal_.cost = std::numeric_limits<double>::infinity();
  reached_.push_back({start, {}, -1, 0, 0});
  costs_[start] = 0;
  Finish(0);
  std::vector<int> beam = {0};
  size_t width = 0;
  const size_t length = num_atoms() + rank();  // of the usual chain, at most
  for (size_t left = 2 * length; left > 0 && !beam.empty(); --left) {
    found_.clear();
    for (int k : beam) {
      at_ = k;
      Expand(Split(reached_[k].state));
    }
    if (width == 0) width = std::max<size_t>(kNarrowest, kMoves / (length * (found_.size() + 1)));
    std::sort(found_.begin(), found_.end(), [](const Reached& a, const Reached& b) {
      return a.score != b.score ? a.score < b.score : a.state < b.state;
    });
    beam.clear();
    for (Reached& r : found_) {
      if (beam.size() == width) break;
      if (r.cost >= goal_.cost || r.cost > costs_[r.state]) continue;
      beam.push_back(static_cast<int>(reached_.size()));
      reached_.push_back(std::move(r));
    }
    for (int k : beam) Finish(k);
  }
  std::vector<Move> back;
  for (const Reached* r = &goal_; r->previous >= 0; r = &reached_[r->previous]) {
    back.push_back(MakeMove(r->step, reached_[r->previous].state, r->state));
  }
  moves->insert(moves->end(), back.rbegin(), back.rend());
}

}  // namespace

void GreedyReshard(Context& context, const Shape* global, const Sharding* from, const Sharding* to,
                   std::vector<Move>* moves) {
  if (from == to) return;
  Greedy(context, global, from, to).Run(moves);
}

}  // namespace internal
}  // namespace shardcall
