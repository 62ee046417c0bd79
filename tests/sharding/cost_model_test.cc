// SPDX-License-Identifier: Apache-2.0
#include "shardcall/sharding/cost_model.h"

#include <limits>
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
  EXPECT_EQ(cost->network_latency, 0);  // as within a host
  EXPECT_EQ(ParseCostModel("host_devices=8, network=1, network_latency=3")->network_latency, 3);
  EXPECT_DOUBLE_EQ(cost->Seconds(Traffic{450e9, 2, 1}), 1 + 2 + cost->latency);
  EXPECT_EQ(CostModel().Seconds(Traffic{100, 0, 2}), CostModel().Seconds(100, 2));
  for (const char* text : {"host_devices=8", "network=1e9", "network_latency=1",
                           "host_devices=1.5, network=1e9", "host_devices=1e300, network=1e9"}) {
    const auto half = ParseCostModel(text);
    ASSERT_FALSE(half.ok()) << text;
    EXPECT_EQ(DiagnosticCode(half.status()), "E211");
    EXPECT_THAT(std::string(half.status().message()), HasSubstr("host_devices"));
  }
}

TEST(CostModel, AxesHaveRatesOfTheirOwn) {
  const auto cost = ParseCostModel(
      "h100, bandwidth.data=25e9, latency.pod=1e-5, bandwidth.pod=5e9, bandwidth.model=400e9");
  ASSERT_TRUE(cost.ok()) << cost.status();
  EXPECT_EQ(cost->bandwidth, 450e9);  // of axes without one
  ASSERT_EQ(cost->axes.size(), 3);
  EXPECT_EQ(cost->axes[0].axis, "data");
  EXPECT_EQ(cost->axes[0].bandwidth, 25e9);
  EXPECT_EQ(cost->axes[0].latency, 0);  // that of the machine
  EXPECT_EQ(cost->axes[1].axis, "pod");
  EXPECT_EQ(cost->axes[1].bandwidth, 5e9);
  EXPECT_EQ(cost->axes[1].latency, 1e-5);
  EXPECT_EQ(cost->axes[2].bandwidth, 400e9);
  // Those of the base stay where none is named, and go where one is.
  EXPECT_EQ(ParseCostModel("latency=1", *cost)->axes.size(), 3);
  EXPECT_EQ(ParseCostModel("latency.x=1", *cost)->axes.size(), 1);

  for (const char* text : {"bandwidth.a=1e9, bandwidth.a=1e9", "latency.a=1, latency.a=2",
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
        "memory=nan", "memory=inf", "bandwidth.=1", "bandwidth.a=x", "latency.=1", "trips=1e999",
        "=3", "h101", "latency=1, host"}) {
    const auto cost = ParseCostModel(text);
    ASSERT_FALSE(cost.ok()) << text;
    EXPECT_EQ(DiagnosticCode(cost.status()), "E211") << text;
    EXPECT_THAT(std::string(cost.status().message()), HasSubstr(text.substr(text.rfind(' ') + 1)));
    EXPECT_THAT(std::string(cost.status().message()), HasSubstr("host, h100, tpu_v5p"));
  }
}

// As ParseCostModel refuses them, where a program fills the fields itself.
TEST(CostModel, FieldsThatNoMachineHasAreRefused) {
  EXPECT_TRUE(CheckCostModel({}).ok());
  EXPECT_TRUE(CheckCostModel(HostCosts()).ok());
  EXPECT_TRUE(CheckCostModel({.latency = 0}).ok());
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const CostModel& cost :
       {CostModel{.bandwidth = 0}, CostModel{.bandwidth = nan}, CostModel{.flop_rate = 0},
        CostModel{.memory_rate = -1}, CostModel{.latency = nan}, CostModel{.trip_count = 0},
        CostModel{.host_devices = 2}, CostModel{.axes = {{.axis = "x"}}},
        CostModel{.axes = {{.axis = "x", .bandwidth = nan}}}}) {
    EXPECT_EQ(DiagnosticCode(CheckCostModel(cost)), "E211") << CheckCostModel(cost);
  }
}

}  // namespace
}  // namespace shardcall
