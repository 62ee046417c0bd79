// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/page/explain_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "shardcall/partitioner/api/page_content.h"
#include "shardcall/partitioner/api/report.h"
#include "tests/support/verify_text.h"

namespace shardcall {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;
using testing::Not;

// Three times round a loop a row sum is brought together.
constexpr char kLoop[] = R"(HloModule </script>, num_partitions=4

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}
body {
  s = (s32[], f32[8,16]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[8,16] get-tuple-element(s), index=1
  zero = f32[] constant(0)
  sums = f32[8] reduce(x, zero), dimensions={1}, to_apply=add
  rows = f32[8,16] broadcast(sums), dimensions={0}
  one = s32[] constant(1)
  next = s32[] add(i, one)
  more = f32[8,16] add(x, rows)
  ROOT t = (s32[], f32[8,16]) tuple(next, more)
}
condition {
  s = (s32[], f32[8,16]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(3)
  ROOT p = pred[] compare(i, n), direction=LT
}
ENTRY main {
  x = f32[8,16] parameter(0), sharding={devices=[2,2]<=[4]}
  zero = s32[] constant(0)
  init = (s32[], f32[8,16]) tuple(zero, x)
  loop = (s32[], f32[8,16]) while(init), condition=condition, body=body
  ROOT y = f32[8,16] get-tuple-element(loop), index=1, sharding={devices=[2,2]<=[4]}
}
)";

class ExplainPageTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string text = kLoop;
    text.replace(text.find("</script>"), 9, "loop");
    auto made = PartitionText(text, {});
    ASSERT_TRUE(made.ok()) << made.status();
    program_ = *std::move(made);
    // A name that HLO text does not have, but a message may.
    program_->global->program.module.header.name = "</script><b>";
    data_ = Json::parse(ExplainPageData(PageContentOf(*program_, {})));
    report_ = Json::parse(ReportJson(*program_, {}));
  }
  std::unique_ptr<PartitionedProgram> program_;
  Json data_, report_;
};

TEST_F(ExplainPageTest, CollectivesAreThoseOfTheReport) {
  ASSERT_EQ(data_["collectives"].size(), report_["collectives"].size());
  ASSERT_EQ(data_["collectives"].size(), 1);
  const Json &c = data_["collectives"][0], &r = report_["collectives"][0];
  EXPECT_EQ(c["name"], r["name"]);
  EXPECT_EQ(data_["texts"][c["opcode"].get<int>()], r["opcode"]);
  EXPECT_EQ(c["bytes"], r["bytes_moved"]);
  EXPECT_EQ(c["trips"], 3);
  EXPECT_EQ(data_["texts"][c["cause"].get<int>()], r["cause"]);
  EXPECT_EQ(data_["bytes"], 3 * r["bytes_moved"].get<double>());
  // Who differs in the second axis alone.
  EXPECT_EQ(data_["groups"][c["devices"].get<int>()]["lists"].dump(), "[[0,1],[2,3]]");
}

TEST_F(ExplainPageTest, AStepIsTheSumOfItsEventsAndALoopRunsItsBodyThreeTimes) {
  const std::string entry = std::to_string(data_["entry"].get<int>());
  Json loop;
  for (const Json& event : data_["steps"][entry]) {
    if (event[0] == 2) loop = event;
  }
  ASSERT_FALSE(loop.is_null());
  double once = 0;
  for (const Json& callee : loop[3]) {
    const Json events = data_["steps"].value(std::to_string(callee.get<int>()), Json::array());
    for (const Json& event : events) once += event[1].get<double>();
  }
  EXPECT_NEAR(loop[1].get<double>(), 3 * once, 1e-15);
  const CostModel cost;
  EXPECT_GT(once, cost.latency);
}

TEST_F(ExplainPageTest, TheOpsAroundACollectiveAreThere) {
  const std::string node = std::to_string(data_["collectives"][0]["node"].get<int>());
  ASSERT_TRUE(data_["nodes"].contains(node));
  for (const Json& operand : data_["nodes"][node][3]) {
    EXPECT_TRUE(data_["nodes"].contains(std::to_string(operand.get<int>())));
  }
  EXPECT_EQ(data_["nodes_left_out"], false);
}

TEST_F(ExplainPageTest, NothingOfTheProgramEndsTheElementItStandsIn) {
  const std::string page = ExplainPage(PageContentOf(*program_, {}));
  EXPECT_THAT(page, Not(HasSubstr("</script><b>")));
  EXPECT_THAT(page, HasSubstr("\\u003c/script>\\u003cb>"));
}

}  // namespace
}  // namespace shardcall
