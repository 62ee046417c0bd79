// SPDX-License-Identifier: Apache-2.0
#include "shardcall/sharding/cost_model.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
namespace {

using testing::HasSubstr;

TEST(CostModel, WhatIsNamedReplacesTheBaseAndTheRestStays) {
  const auto cost = ParseCostModel(" latency = 1e-3, trips=4 ,", HostCosts());
  ASSERT_TRUE(cost.ok()) << cost.status();
  EXPECT_EQ(cost->latency, 1e-3);
  EXPECT_EQ(cost->trip_count, 4);
  EXPECT_EQ(cost->bandwidth, HostCosts().bandwidth);
  EXPECT_EQ(cost->flop_rate, HostCosts().flop_rate);
  EXPECT_EQ(ParseCostModel("bandwidth=1,flops=2,memory=3")->memory_rate, 3);
  EXPECT_EQ(ParseCostModel("")->bandwidth, CostModel().bandwidth);
}

TEST(CostModel, AMachineIsNamedFirstAndWhatFollowsDiffersFromIt) {
  const auto host = ParseCostModel("host");
  ASSERT_TRUE(host.ok()) << host.status();
  EXPECT_EQ(host->bandwidth, HostCosts().bandwidth);
  EXPECT_EQ(host->latency, HostCosts().latency);
  const auto h100 = ParseCostModel(" h100 , latency=5e-6", {.trip_count = 3});
  ASSERT_TRUE(h100.ok()) << h100.status();
  EXPECT_EQ(h100->bandwidth, 450e9);
  EXPECT_EQ(h100->flop_rate, 989e12);
  EXPECT_EQ(h100->memory_rate, 3.35e12);
  EXPECT_EQ(h100->latency, 5e-6);
  EXPECT_EQ(h100->trip_count, 3);  // is of the program, not of the machine
  EXPECT_EQ(ParseCostModel("tpu_v5p", HostCosts())->flop_rate, 459e12);
}

TEST(CostModel, SecondsFollowFromTheRates) {
  const CostModel cost{.bandwidth = 10, .flop_rate = 100, .memory_rate = 1000, .latency = 3};
  EXPECT_EQ(cost.Seconds(50, 2), 5 + 6);
  EXPECT_EQ(cost.ProductSeconds(200), 4);  // a multiplication and an addition for each product
  EXPECT_EQ(cost.MemorySeconds(2000), 2);
}

TEST(CostModel, HostsHaveANetworkBetweenThem) {
  const auto cost = ParseCostModel("h100, host_devices=8, network=50e9");
  ASSERT_TRUE(cost.ok()) << cost.status();
  EXPECT_EQ(cost->host_devices, 8);
  EXPECT_EQ(cost->bandwidth, 450e9);
  EXPECT_DOUBLE_EQ(cost->Seconds(Traffic{450e9 + 100e9, 100e9, 1}), 1 + 2 + cost->latency);
  EXPECT_EQ(CostModel().Seconds(Traffic{100, 0, 2}), CostModel().Seconds(100, 2));
  for (const char* text : {"host_devices=8", "network=1e9", "host_devices=1.5, network=1e9",
                           "host_devices=1e300, network=1e9"}) {
    const auto half = ParseCostModel(text);
    ASSERT_FALSE(half.ok()) << text;
    EXPECT_EQ(DiagnosticCode(half.status()), "E211");
    EXPECT_THAT(std::string(half.status().message()), HasSubstr("host_devices"));
  }
}

TEST(CostModel, AxesHaveRatesOfTheirOwn) {
  using Others = CostModel::AxisRates::Others;
  const auto two = ParseCostModel("bandwidth.data=25e9, bandwidth.model=400e9");
  ASSERT_TRUE(two.ok()) << two.status();
  EXPECT_EQ(two->bandwidth, 400e9);
  EXPECT_EQ(two->network, 25e9);
  EXPECT_EQ(two->axes.network, std::vector<std::string>{"data"});
  EXPECT_EQ(two->axes.bandwidth, std::vector<std::string>{"model"});
  EXPECT_EQ(two->axes.others, Others::kUnknown);
  EXPECT_EQ(two->host_devices, 0);

  const auto slower = ParseCostModel("h100, bandwidth.data=50e9");
  ASSERT_TRUE(slower.ok()) << slower.status();
  EXPECT_EQ(slower->bandwidth, 450e9);
  EXPECT_EQ(slower->network, 50e9);
  EXPECT_EQ(slower->axes.others, Others::kBandwidth);

  const auto faster = ParseCostModel("bandwidth=10e9, bandwidth.model=100e9");
  ASSERT_TRUE(faster.ok()) << faster.status();
  EXPECT_EQ(faster->bandwidth, 100e9);
  EXPECT_EQ(faster->network, 10e9);
  EXPECT_TRUE(faster->axes.network.empty());
  EXPECT_EQ(faster->axes.others, Others::kNetwork);

  for (const char* text :
       {"bandwidth.a=1, bandwidth.b=2, bandwidth.c=3", "bandwidth.a=1e9, bandwidth.a=1e9",
        "bandwidth.a=1e9, host_devices=8, network=1e9"}) {
    const auto wrong = ParseCostModel(text);
    ASSERT_FALSE(wrong.ok()) << text;
    EXPECT_EQ(DiagnosticCode(wrong.status()), "E211") << text;
    EXPECT_THAT(std::string(wrong.status().message()), HasSubstr("bandwidth.data=25e9"));
  }
}

TEST(CostModel, OtherNamesAndWhatIsNoPositiveNumberAreE211) {
  for (const std::string text :
       {"speed=1", "bandwidth", "bandwidth=", "bandwidth=fast", "latency=0", "flops=-1",
        "memory=nan", "memory=inf", "bandwidth.=1", "bandwidth.a=x", "trips=1e999", "=3", "h101",
        "latency=1, host"}) {
    const auto cost = ParseCostModel(text);
    ASSERT_FALSE(cost.ok()) << text;
    EXPECT_EQ(DiagnosticCode(cost.status()), "E211") << text;
    EXPECT_THAT(std::string(cost.status().message()), HasSubstr(text.substr(text.rfind(' ') + 1)));
    EXPECT_THAT(std::string(cost.status().message()), HasSubstr("host, h100, tpu_v5p"));
  }
}

}  // namespace
}  // namespace shardcall
