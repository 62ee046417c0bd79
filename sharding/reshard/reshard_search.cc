// SPDX-License-Identifier: Apache-2.0
#include "shardcall/sharding/reshard/reshard_search.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "shardcall/sharding/base/status.h"
#include "shardcall/sharding/reshard/reshard_moves.h"

namespace shardcall {
inline namespace internal {
namespace {

class Search final : public ReshardMoves {
 public:
  Search(Context& context, const Shape* global, const Sharding* from, const Sharding* to, bool fine)
      : ReshardMoves(context, global, from, to, fine),
        queue_(context.Get<Scratch>().queue),
        best_(context.Get<Scratch>().best) {
    queue_.clear();
    best_.clear();
  }

  bool Run(int64_t max_states, std::vector<Move>* moves);

 private:
  struct Node {
    double cost;
    State state;
    bool operator<(const Node& o) const {  // smallest cost first, then by state
      return cost != o.cost ? cost > o.cost : state > o.state;
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
  void Push(Node node) {
    queue_.push_back(std::move(node));
    std::push_heap(queue_.begin(), queue_.end());
  }

  Node at_;  // the node that is being expanded
  State goal_;
  // A lower bound of the cost of the last move, and the cost of the cheapest chain so far.
  double goal_bytes_ = 0, goal_cost_ = std::numeric_limits<double>::infinity();
  std::vector<Node>& queue_;
  absl::flat_hash_map<State, Reached>& best_;
};

void Search::Try(Lists next, const Step& step) {
  const double cost = Cost(at_.cost, next, step);
  if (cost >= goal_cost_) return;
  std::sort(next[rank()].begin(), next[rank()].end());
  State state = Join(next);
  if (state == goal_) {
    goal_cost_ = std::min(goal_cost_, cost);
  } else if (cost + goal_bytes_ + 64 >= goal_cost_) {
    return;  // every chain through here ends in a move to the goal
  }
  auto [it, fresh] = best_.try_emplace(state);
  if (!fresh && it->second.cost <= cost) return;
  it->second = {at_.state, step, cost};
  Push({cost, std::move(state)});
}

bool Search::Run(int64_t max_states, std::vector<Move>* moves) {
  const State start = Join(start_);
  goal_ = Join(target_);
  goal_bytes_ = 1e-3 * LocalBytes(target_);
  best_[start] = Reached{};
  Push({0, start});
  bool found = false;
  while (!queue_.empty()) {
    std::pop_heap(queue_.begin(), queue_.end());
    at_ = std::move(queue_.back());
    queue_.pop_back();
    if (at_.cost + goal_bytes_ + 64 >= goal_cost_ || at_.state == goal_) {
      found = true;
      break;
    }
    if (at_.cost > best_.find(at_.state)->second.cost) continue;
    if (static_cast<int64_t>(best_.size()) > max_states) return false;
    Expand(Split(at_.state));
  }
  SHARDCALL_CHECK(found);  // gathering all, then cutting, always leads there
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
                   std::vector<Move>* moves, int64_t max_states, bool fine) {
  if (from == to) return true;
  return Search(context, global, from, to, fine).Run(max_states, moves);
}

}  // namespace internal
}  // namespace shardcall
