// SPDX-License-Identifier: Apache-2.0
// Which propagation a program gets where two factors want one axis.
#include <nlohmann/json.hpp>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "shardcall/partitioner/api/report.h"
#include "shardcall/sharding/base/status.h"
#include "tests/support/verify_text.h"

namespace shardcall {
namespace {

using testing::HasSubstr;
using Json = nlohmann::json;

// A batch x over "d", weights over "d", and the product of both: either v is gathered (b rows of x
// stay on their device) or x is. The sizes of x and v are to be put in.
std::string Program(int64_t rows, int64_t columns) {
  return absl::StrReplaceAll(
      R"(HloModule m, num_partitions=8, allow_spmd_sharding_propagation_to_output={true}
ENTRY main {
  x = f32[ROWS,64] parameter(0), sharding={devices=[8,1]<=[8]}
  v = f32[64,COLUMNS] parameter(1), sharding={devices=[1,8]<=[8]}
  w = f32[COLUMNS,64] parameter(2), sharding={devices=[1,8]<=[8]}
  h = f32[ROWS,COLUMNS] dot(x, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  t = f32[ROWS,COLUMNS] tanh(h)
  ROOT y = f32[ROWS,64] dot(t, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
})",
      {{"ROWS", absl::StrCat(rows)}, {"COLUMNS", absl::StrCat(columns)}});
}

std::unique_ptr<PartitionedProgram> Partitioned(const std::string& text,
                                                std::optional<ConflictOrder> order = std::nullopt) {
  PartitionOptions options = ToRunOptions({}).partition;
  options.conflicts = order;
  auto p = Partition(*ParseText(text), options);
  EXPECT_TRUE(p.ok()) << p.status();
  return *std::move(p);
}

TEST(CheapestPropagation, GathersWhatIsSmaller) {
  // 4 bytes x 64 rows x 1024 columns of each weight, 7/8 of it.
  const auto weights = Partitioned(Program(16384, 1024));
  EXPECT_EQ(TotalBytesMoved(weights->local), 2 * 4 * 64 * 1024 * 7 / 8);
  EXPECT_EQ(weights->global->shardings.conflicts, ConflictOrder::kLarger);
  // x, and shards of the others; w alone would be more.
  const auto batch = Partitioned(Program(64, 4096));
  EXPECT_LT(TotalBytesMoved(batch->local), 4 * 64 * 4096 * 7 / 8 / 4);
}

TEST(CheapestPropagation, AnOrderThatIsGivenIsTaken) {
  for (ConflictOrder order : kConflictOrders) {
    const auto p = Partitioned(Program(16384, 1024), order);
    EXPECT_EQ(p->global->shardings.conflicts, order);
    EXPECT_TRUE(p->global->tried_orders.empty());
  }
  EXPECT_LT(TotalBytesMoved(Partitioned(Program(16384, 1024), ConflictOrder::kLarger)->local),
            TotalBytesMoved(Partitioned(Program(16384, 1024), ConflictOrder::kSmaller)->local));
}

TEST(CheapestPropagation, TheReportHasTheOrdersThatWereTried) {
  const auto p = Partitioned(Program(16384, 1024));
  const Json j = Json::parse(ReportJson(*p, {}))["conflicts"];
  EXPECT_EQ(j["order"], "larger");
  ASSERT_GE(j["tried"].size(), 2);
  EXPECT_EQ(j["tried"][0]["order"], "wait");
  for (const Json& t : j["tried"]) {
    if (t["taken"]) EXPECT_EQ(t["bytes"], TotalBytesMoved(p->local));
  }
  EXPECT_THAT(Explain(*p, {}, ExplainFormat::kText), HasSubstr("larger 448.00 KiB"));
  const auto one = Partitioned(absl::StrReplaceAll(
      Program(64, 64), {{"parameter(1), sharding={devices=[1,8]<=[8]}", "parameter(1)"},
                        {"parameter(2), sharding={devices=[1,8]<=[8]}", "parameter(2)"}}));
  EXPECT_FALSE(Json::parse(ReportJson(*one, {})).contains("conflicts"));
}

int TriedForOneRule(const PartitionedProgram& p) {
  return absl::c_count_if(p.global->tried_orders,
                          [](const TriedOrder& t) { return !t.choices.empty(); });
}

TEST(CheapestPropagation, TriesSingleRulesUnlessTheFirstOrderIsClearlyCheapest) {
  EXPECT_EQ(TriedForOneRule(*Partitioned(Program(512, 512))), 2);
  const auto clear = Partitioned(R"(HloModule m, num_partitions=16
ENTRY main {
  x = f32[1024,512] parameter(0), sharding={devices=[2,8]<=[16]}
  w = f32[512,512] parameter(1), sharding={devices=[8,2]<=[2,8]T(1,0)}
  h = f32[1024,512] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  t = f32[1024,512] tanh(h)
  v = f32[512,512] transpose(w), dimensions={1,0}
  ROOT y = f32[1024,512] dot(t, v), lhs_contracting_dims={1}, rhs_contracting_dims={0},
      sharding={devices=[2,8]<=[16]}
})");
  EXPECT_EQ(clear->global->shardings.conflicts, ConflictOrder::kWait);
  EXPECT_GE(clear->global->tried_orders.size(), 2);
  EXPECT_EQ(TriedForOneRule(*clear), 0);
}

TEST(CheapestPropagation, OrdersHaveNames) {
  for (ConflictOrder order : kConflictOrders) {
    EXPECT_EQ(*ParseConflictOrder(ConflictOrderName(order)), order);
  }
  EXPECT_EQ(*ParseConflictOrder("cheapest"), std::nullopt);
  EXPECT_EQ(DiagnosticCode(ParseConflictOrder("largest").status()), "E212");
}

}  // namespace
}  // namespace shardcall
