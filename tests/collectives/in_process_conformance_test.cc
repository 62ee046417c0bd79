// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <numeric>
#include <thread>
#include <tuple>
#include <vector>

#include "shardcall/collectives/async.h"
#include "shardcall/collectives/in_process/in_process.h"
#include "tests/collectives/conformance.h"

namespace shardcall::testing {
namespace {

class InProcess : public ::testing::TestWithParam<std::tuple<int, size_t>> {};

TEST_P(InProcess, Conforms) {
  const int size = std::get<0>(GetParam());
  const ConformanceCase& test = ConformanceCases()[std::get<1>(GetParam())];
  InProcessWorld world(size, absl::Seconds(60));
  std::vector<std::thread> devices;
  for (int r = 0; r < size; ++r) {
    devices.emplace_back([&world, &test, r] {
      auto communicator = world.Rank(r);
      test.body(*communicator);
    });
  }
  for (std::thread& device : devices) device.join();
}

INSTANTIATE_TEST_SUITE_P(AllCases, InProcess,
                         ::testing::Combine(::testing::Values(1, 2, 3, 4, 8),
                                            ::testing::Range<size_t>(0, ConformanceCases().size())),
                         [](const auto& info) {
                           return ConformanceCases()[std::get<1>(info.param)].name + "On" +
                                  std::to_string(std::get<0>(info.param));
                         });

// The same through a thread of its own per device.
class InProcessAsync : public ::testing::TestWithParam<size_t> {};

TEST_P(InProcessAsync, Conforms) {
  const ConformanceCase& test = ConformanceCases()[GetParam()];
  InProcessWorld world(3, absl::Seconds(60));
  std::vector<std::thread> devices;
  for (int r = 0; r < 3; ++r) {
    devices.emplace_back([&world, &test, r] {
      auto communicator = world.Rank(r);
      AsyncCommunicator async(*communicator);
      test.body(async);
    });
  }
  for (std::thread& device : devices) device.join();
}

INSTANTIATE_TEST_SUITE_P(AllCases, InProcessAsync,
                         ::testing::Range<size_t>(0, ConformanceCases().size()),
                         [](const auto& info) { return ConformanceCases()[info.param].name; });

TEST(InProcessScale, FiveHundredTwelveDevicesMeetOnAFewCores) {
  constexpr int kSize = 512;
  InProcessWorld world(kSize, absl::Seconds(60));
  std::vector<int> all(kSize);
  std::iota(all.begin(), all.end(), 0);
  std::vector<std::thread> devices;
  for (int r = 0; r < kSize; ++r) {
    devices.emplace_back([&world, &all, r] {
      auto communicator = world.Rank(r);
      for (int call = 0; call < 20; ++call) {
        int32_t value = r + call;
        ASSERT_TRUE(
            communicator
                ->AllReduce(all, ReduceKind::kSum, ElementType::kS32, &value, &value, 1, {"%ar"})
                .ok());
        ASSERT_EQ(value, kSize * (kSize - 1) / 2 + kSize * call);
        const int pair[] = {r & ~1, r | 1};
        value = r;
        ASSERT_TRUE(
            communicator
                ->AllReduce(pair, ReduceKind::kMax, ElementType::kS32, &value, &value, 1, {"%pair"})
                .ok());
        ASSERT_EQ(value, r | 1);
      }
    });
  }
  for (std::thread& device : devices) device.join();
}

}  // namespace
}  // namespace shardcall::testing
