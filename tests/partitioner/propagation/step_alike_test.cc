// SPDX-License-Identifier: Apache-2.0
// Steps of tensors that are alike propose what the way for all other steps proposes.
#include <optional>
#include <random>

#include "gtest/gtest.h"
#include "shardcall/partitioner/propagation/step.h"
#include "shardcall/sharding/context.h"

namespace shardcall {
namespace {

// A random step of a pointwise rule: each tensor has one of two shardings, some without any axis,
// and its own limits.
class RandomStep {
 public:
  explicit RandomStep(uint32_t seed)
      : random_(seed),
        mesh_(InternBaseMesh(context_, {4, 2, 3}, DeviceOrder::Identity(24))),
        limits_(2 + Below(3)) {
    const int rank = 1 + Below(3), n = static_cast<int>(limits_.size());
    const Sharding* const shardings[] = {Random(rank), Random(rank),
                                         ReplicatedSharding(context_, mesh_, rank)};
    TensorFactors dims;
    for (int d = 0; d < rank; ++d) {
      Factor factor;
      factor.size = 8 + Below(9);
      if (Below(8) == 0) factor.kind = FactorKind::kNeedReplication;
      if (Below(8) == 0) factor.kind = FactorKind::kPermutation;
      rule_.factors.push_back(factor);
      dims.dims.push_back({d});
    }
    rule_.operands.assign(n - 1, dims);
    rule_.results.assign(1, dims);
    const bool two = Below(4) == 0;
    for (int t = 0; t < n; ++t) {
      bytes_.push_back(32 << Below(3));
      limits_[t].cheap = Below(4) == 0;
      if (Below(4) == 0) limits_[t].closed.Insert(Below(rank));
      if (Below(8) == 0) limits_[t].reserved = {mesh_->FullAxis(Below(3))};
      const int which = Below(3);
      tensors_.push_back({shardings[which == 1 && !two ? 0 : which], &limits_[t]});
    }
    if (Below(8) == 0) {
      const int t = Below(n);
      limits_[t].fixed = true;
      ShardingBuilder b(mesh_, rank);
      b.maximal_device = 1;
      tensors_[t].sharding = b.Intern(context_);
    }
    step_.emplace(&rule_, Below(2) == 0 ? Opcode::kAdd : Opcode::kCustomCall, bytes_);
  }

  bool alike_handles() const {
    StepResult result;
    return PropagateAlike(*step_, tensors_, &result);
  }
  StepResult Step() const { return PropagateThrough(*step_, tensors_); }
  StepResult StepAsOthers() const {
    StepRule other = *step_;
    other.alike.clear();
    other.alike_level = -1;
    return PropagateThrough(other, tensors_);
  }
  bool settled() const {
    for (int t : step_->alike) {
      if (tensors_[t].sharding != tensors_[0].sharding) return false;
    }
    return true;
  }

 private:
  int Below(int n) { return static_cast<int>(random_() % n); }
  const Sharding* Random(int rank) {
    ShardingBuilder b(mesh_, rank);
    for (int axis = 0; axis < 3; ++axis) {
      const int where = Below(rank + 2);
      if (where < rank) b.dims[where].push_back(mesh_->FullAxis(axis));
      if (where == rank && Below(4) == 0) b.manual.push_back(mesh_->FullAxis(axis));
    }
    return b.Intern(context_);
  }

  std::mt19937 random_;
  Context context_;
  const BaseMesh* mesh_;
  ShardingRule rule_;
  std::vector<Limits> limits_;
  std::vector<int64_t> bytes_;
  std::vector<StepTensor> tensors_;
  std::optional<StepRule> step_;
};

TEST(StepAlikeTest, ProposesWhatTheWayForAllStepsProposes) {
  int handled = 0, proposing = 0;
  for (uint32_t seed = 0; seed < 20000; ++seed) {
    const RandomStep random(seed);
    const StepResult a = random.Step(), b = random.StepAsOthers();
    handled += random.alike_handles();
    proposing += random.alike_handles() && !a.proposals.empty();
    ASSERT_EQ(a.stage, b.stage) << seed;
    ASSERT_EQ(a.contested, b.contested) << seed;
    ASSERT_EQ(a.proposals.size(), b.proposals.size()) << seed;
    if (!a.proposals.empty()) ASSERT_EQ(a.mesh, b.mesh) << seed;
    for (size_t k = 0; k < a.proposals.size(); ++k) {
      const Proposal &x = a.proposals[k], &y = b.proposals[k];
      ASSERT_EQ(std::tie(x.tensor, x.dim, x.from, x.from_dim, x.kind, x.axes),
                std::tie(y.tensor, y.dim, y.from, y.from_dim, y.kind, y.axes))
          << seed << ", proposal " << k;
    }
    // The engine does not even ask for these.
    if (random.settled()) ASSERT_TRUE(b.proposals.empty() && !b.contested) << seed;
  }
  EXPECT_GT(handled, 5000);
  EXPECT_GT(proposing, 2000);
}

}  // namespace
}  // namespace shardcall
