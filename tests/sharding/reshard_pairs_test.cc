// SPDX-License-Identifier: Apache-2.0
// Every pair of shardings of arrays of rank 1 to 3, over meshes of 8 and 64 devices: the cheapest
// chain is found for each of them, and it sends little more than the devices lack.
#include <gtest/gtest.h>

#include <vector>

#include "shardcall/sharding/reshard/reshard.h"
#include "tests/sharding/all_shardings.h"

namespace shardcall {
namespace {

// The bytes of all pairs by the bytes that devices lack in all pairs. A mesh of k axes has more
// than k^2 pairs that no single collective serves. Fails where the search for the cheapest chain is
// given up.
double SentByLacking(const std::vector<int64_t>& mesh_sizes, const std::vector<int64_t>& dims) {
  Context context;
  int64_t devices = 1;
  for (int64_t s : mesh_sizes) devices *= s;
  const BaseMesh* mesh = InternBaseMesh(context, mesh_sizes, DeviceOrder::Identity(devices));
  const Shape* shape = context.WithDefaultLayout(context.MakeArray(ElementType::kF32, dims));
  const auto all = AllShardings(context, mesh, static_cast<int>(dims.size()));
  double sent = 0, lacking = 0;
  for (const Sharding* from : all) {
    for (const Sharding* to : all) {
      const ReshardPlan& plan = PlanReshard(context, shape, from, to);
      EXPECT_FALSE(plan.greedy) << from->ToString() << " -> " << to->ToString();
      sent += plan.bytes;
      lacking += plan.lower_bound;
    }
  }
  return sent / lacking;
}

TEST(ReshardPairs, OfDimensionsThatTheShardsDivide) {
  const std::vector<int64_t> rank1 = {4096}, rank2 = {256, 128}, rank3 = {64, 128, 256};
  for (const std::vector<int64_t>& dims : {rank1, rank2, rank3}) {
    EXPECT_EQ(SentByLacking({8}, dims), 1);
    EXPECT_LE(SentByLacking({4, 2}, dims), 1.251);
    EXPECT_LE(SentByLacking({2, 2, 2}, dims), 1.704);
    EXPECT_LE(SentByLacking({8, 8}, dims), 1.123);
    EXPECT_LE(SentByLacking({4, 4, 4}, dims), 1.363);
  }
}

// Tiles of other sizes do not nest, so that halo exchanges come with the moves.
TEST(ReshardPairs, OfDimensionsThatTheyDoNotDivide) {
  const std::vector<int64_t> rank1 = {1000}, rank2 = {100, 90}, rank3 = {60, 100, 33};
  for (const std::vector<int64_t>& dims : {rank1, rank2, rank3}) {
    EXPECT_LE(SentByLacking({8}, dims), 1.13);
    EXPECT_LE(SentByLacking({4, 2}, dims), 1.38);
    EXPECT_LE(SentByLacking({2, 2, 2}, dims), 1.715);
    EXPECT_LE(SentByLacking({8, 8}, dims), 1.506);
    EXPECT_LE(SentByLacking({4, 4, 4}, dims), 1.865);
  }
}

}  // namespace
}  // namespace shardcall
