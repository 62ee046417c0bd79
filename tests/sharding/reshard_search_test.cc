// SPDX-License-Identifier: Apache-2.0
// The search for the cheapest reshard misses none of the chains that its moves can form: what it
// takes for a lower bound of the rest of a chain is one.
#include "shardcall/sharding/reshard/reshard_search.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <utility>
#include <vector>

#include "shardcall/sharding/reshard/reshard_moves.h"
#include "tests/sharding/all_shardings.h"
#include "tests/sharding/random_reshard.h"

namespace shardcall {
namespace {

// Tries all moves from every state, by cost (Dijkstra, 1959), without a bound.
class Exhaustive : public internal::ReshardMoves {
 public:
  using ReshardMoves::ReshardMoves;

  double Cost() {
    const State goal = Join(target_);
    costs_[Join(start_)] = 0;
    queue_.insert({0, Join(start_)});
    while (!queue_.empty()) {
      const auto [cost, state] = *queue_.begin();
      queue_.erase(queue_.begin());
      if (state == goal) return cost;
      if (cost > costs_[state]) continue;
      at_ = cost;
      Expand(Split(state));
    }
    return -1;
  }

 private:
  void Try(Lists next, const Step& step) override {
    const double cost = ReshardMoves::Cost(at_, next, step);
    std::sort(next[rank()].begin(), next[rank()].end());
    State state = Join(next);
    const auto [known, fresh] = costs_.try_emplace(state, cost);
    if (!fresh && known->second <= cost) return;
    known->second = cost;
    queue_.insert({cost, std::move(state)});
  }
  bool MayTry(double) const override { return true; }

  double at_ = 0;
  std::map<State, double> costs_;
  std::multimap<double, State> queue_;
};

// The search also has chains of a permute that no other chain tries.
void ExpectNoDearer(Context& context, const Shape* shape, const Sharding* from, const Sharding* to,
                    bool fine, const std::string& text) {
  if (from == to) return;
  double cost = std::numeric_limits<double>::infinity(), lacking = -1;
  std::vector<Move> moves;
  ASSERT_TRUE(
      internal::SearchReshard(context, shape, from, to, &moves, 1'000'000, fine, &cost, &lacking));
  double sent = 0;
  for (const Move& m : moves) sent += m.bytes;
  EXPECT_GE(sent, lacking * (1 - 1e-9)) << text;
  EXPECT_LE(cost, Exhaustive(context, shape, from, to, fine).Cost() * (1 + 1e-9)) << text;
}

TEST(ReshardSearch, FindsTheCheapestOfAllChainsOfRandomReshards) {
  std::mt19937 random(57);
  for (int k = 0; k < 2500; ++k) {
    RandomReshard r(random, 4, 3);
    ExpectNoDearer(r.context, r.shape, r.from, r.to, /*fine=*/false, r.Text());
  }
}

TEST(ReshardSearch, FindsTheCheapestOfAllChainsOfPartsOfAxes) {
  for (const std::vector<int64_t>& dims : {std::vector<int64_t>{64, 32}, {30, 22}}) {
    Context context;
    const BaseMesh* mesh = InternBaseMesh(context, {4, 4}, DeviceOrder::Identity(16));
    const Shape* shape = context.WithDefaultLayout(context.MakeArray(ElementType::kF32, dims));
    const auto all = AllShardings(context, mesh, 2);
    for (const Sharding* from : all) {
      for (const Sharding* to : all) {
        ExpectNoDearer(context, shape, from, to, /*fine=*/true,
                       from->ToString() + " -> " + to->ToString());
      }
    }
  }
}

}  // namespace
}  // namespace shardcall
