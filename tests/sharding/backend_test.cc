// SPDX-License-Identifier: Apache-2.0
// What stands for collectives that a backend lacks, and what that sends.
#include "shardcall/sharding/backend.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "shardcall/sharding/cost_model.h"
#include "shardcall/sharding/reshard/links.h"
#include "tests/sharding/mesh_cases.h"

namespace shardcall {
namespace {

using internal::AllParts;
using internal::CollectiveParts;
using internal::CollectiveSends;
using internal::CollectivesText;
using internal::Links;
using internal::SetLinks;
using internal::WayOf;

BackendLimits With(const std::string& collectives) {
  const auto cost = ParseCostModel("collectives=" + collectives);
  EXPECT_TRUE(cost.ok()) << cost.status();
  return cost->backend;
}

double Sent(const BackendLimits& backend, Collective c, int64_t n) {
  double sent = 0;
  for (const auto& part : AllParts(backend, c, n)) {
    EXPECT_TRUE(backend.Has(part.by));
    sent += CollectiveSends(part.by, part.runs * part.operand, static_cast<double>(n));
  }
  return sent;
}

TEST(Backend, WithoutADescriptionHasAll) {
  EXPECT_TRUE(CostModel().backend.has_all());
  EXPECT_TRUE(ParseCostModel("h100")->backend.has_all());
  EXPECT_EQ(CollectivesText({}),
            "all-gather+all-reduce+reduce-scatter+all-to-all+collective-permute+"
            "collective-broadcast+ragged-all-to-all");
  EXPECT_TRUE(With(CollectivesText({})).has_all());
}

TEST(Backend, AWayThatSendsNoMoreIsTakenWhereThereIsOne) {
  const BackendLimits exchange = With("all-to-all");
  EXPECT_EQ(Sent(exchange, Collective::kAllGather, 8), 7);
  EXPECT_EQ(Sent(exchange, Collective::kReduceScatter, 8), 7.0 / 8);
  EXPECT_EQ(Sent(exchange, Collective::kAllReduce, 8), 14.0 / 8);
  // Gathers double what they have in each round, exchanges go by distance.
  const BackendLimits permute = With("collective-permute");
  EXPECT_EQ(Sent(permute, Collective::kAllGather, 8), 7);
  EXPECT_EQ(AllParts(permute, Collective::kAllGather, 8)[0].runs, 3);
  EXPECT_EQ(AllParts(permute, Collective::kAllGather, 6)[0].runs, 3);
  EXPECT_EQ(AllParts(permute, Collective::kAllToAll, 8)[0].runs, 7);
  EXPECT_EQ(Sent(permute, Collective::kAllToAll, 8), 7.0 / 8);
  EXPECT_EQ(Sent(permute, Collective::kAllReduce, 8), 14.0 / 8);
}

TEST(Backend, OtherwiseTheOneThatSendsLeast) {
  // Sums of zeros and of the part that each device has.
  const BackendLimits reduce = With("all-reduce");
  EXPECT_EQ(Sent(reduce, Collective::kAllGather, 8), 14);
  EXPECT_EQ(WayOf(reduce, Collective::kReduceScatter, 8)[0].by, Collective::kAllReduce);
  const BackendLimits gather = With("all-gather");
  EXPECT_EQ(WayOf(gather, Collective::kAllReduce, 2)[0].by, Collective::kAllGather);
  EXPECT_EQ(Sent(gather, Collective::kAllReduce, 8), 7);
  EXPECT_EQ(Sent(gather, Collective::kPermute, 8), 7);
  const BackendLimits both = With("all-reduce+all-gather");
  EXPECT_EQ(WayOf(both, Collective::kReduceScatter, 8)[0].by, Collective::kAllReduce);
  EXPECT_EQ(Sent(both, Collective::kBroadcast, 8), 14.0 / 8);
  EXPECT_TRUE(WayOf(both, Collective::kRaggedAllToAll, 8).empty());
}

// Every set of the five that can reach all devices has a way to each of them, in any group.
TEST(Backend, EachOfFourCollectivesStandsForAllOthers) {
  for (uint32_t has = 1; has < 1u << 5; ++has) {
    BackendLimits backend;
    backend.lacks = ~has & 0x7f;
    const bool reaches = has != 1u << static_cast<int>(Collective::kReduceScatter);
    for (int c = 0; c < static_cast<int>(Collective::kRaggedAllToAll); ++c) {
      for (int64_t n = 2; n <= 9; ++n) {
        const Collective kind = static_cast<Collective>(c);
        const CollectiveParts way = WayOf(backend, kind, n);
        ASSERT_EQ(!way.empty(), reaches || backend.Has(kind)) << has << " " << c;
        ASSERT_GE(Sent(backend, kind, n) + 1e-9,
                  backend.Has(kind) || !reaches ? 0 : CollectiveSends(kind, 1, n) - 1e-9);
      }
    }
  }
}

TEST(Backend, PlansAreComparedByWhatStandsForTheirMoves) {
  Context context;
  const BaseMesh& mesh = *InternBaseMesh(context, {8}, DeviceOrder::Identity(8));
  const CostModel cost = *ParseCostModel("collectives=collective-permute");
  ASSERT_TRUE(SetLinks(context, cost, &mesh).ok());
  Links& links = context.Get<Links>();
  ASSERT_FALSE(links.alike());
  const AxisList all = {{0, 1, 8}};
  const auto gather = links.Of(mesh, all, Collective::kAllGather);
  EXPECT_EQ(gather.sent, 1);
  EXPECT_EQ(gather.runs, 3);
  // Of 700 bytes that a gather would send, in 3 permutes.
  const Traffic traffic = links.Over(gather, 700);
  EXPECT_EQ(traffic.bytes, 700);
  EXPECT_EQ(traffic.collectives, 3);
  EXPECT_DOUBLE_EQ(cost.Seconds(traffic), 700 / cost.bandwidth + 3 * cost.latency);
  ASSERT_TRUE(SetLinks(context, *ParseCostModel("collectives=all-reduce"), &mesh).ok());
  EXPECT_EQ(links.Over(links.Of(mesh, all, Collective::kAllGather), 700).bytes, 1400);
  ASSERT_TRUE(SetLinks(context, CostModel(), &mesh).ok());
  EXPECT_TRUE(links.alike());
}

TEST(Backend, UnknownCollectivesAndThoseThatReachTooFewAreE211) {
  for (const char* text :
       {"collectives=", "collectives=all-gather+", "groups=odd", "collectives=gather",
        "collectives=reduce-scatter", "collectives=ragged-all-to-all+collective-broadcast"}) {
    const auto cost = ParseCostModel(text);
    ASSERT_FALSE(cost.ok()) << text;
    EXPECT_THAT(std::string(cost.status().message()),
                testing::AllOf(testing::StartsWith("E211"),
                               testing::HasSubstr("collectives=all-gather+all-reduce")));
  }
  EXPECT_EQ(ParseCostModel("groups = grid")->backend.groups, GroupForm::kGrid);
  EXPECT_EQ(ParseCostModel(" collectives = all-gather + all-reduce ")->backend,
            With("all-gather+all-reduce"));
}

}  // namespace
}  // namespace shardcall
