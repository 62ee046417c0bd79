// SPDX-License-Identifier: Apache-2.0
#include "shardcall/sharding/base/stop.h"

#include <thread>

#include "gtest/gtest.h"
#include "shardcall/sharding/base/status.h"
#include "shardcall/sharding/base/steady_time.h"

namespace shardcall {
namespace {

TEST(Stop, WithoutAScopeNothingStops) {
  EXPECT_EQ(StopScope::Innermost(), nullptr);
  EXPECT_TRUE(CheckStop().ok());
}

TEST(Stop, ARequestLastsAndIsCancelled) {
  StopSource source;
  StopScope scope({.source = &source});
  EXPECT_TRUE(CheckStop().ok());
  std::thread([&] { source.Request(); }).join();
  for (int k = 0; k < 2; ++k) {
    EXPECT_EQ(CheckStop().code(), absl::StatusCode::kCancelled);
    EXPECT_EQ(DiagnosticCode(CheckStop()), "E346");
  }
}

TEST(Stop, ALimitIsADeadline) {
  {
    StopScope scope({.limit = absl::Hours(1)});
    EXPECT_TRUE(CheckStop().ok());
  }
  StopScope scope({.limit = absl::Nanoseconds(1)});
  EXPECT_EQ(CheckStop().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(DiagnosticCode(CheckStop()), "E346");
}

TEST(Stop, AnOuterScopeHoldsWithinAnInnerOneAndNotTheOtherWayRound) {
  StopSource outer_source, inner_source;
  StopScope outer({.source = &outer_source});
  {
    StopScope inner({.source = &inner_source});
    inner_source.Request();
    EXPECT_FALSE(CheckStop().ok());
  }
  EXPECT_TRUE(CheckStop().ok());
  outer_source.Request();
  StopScope inner({});
  EXPECT_FALSE(CheckStop().ok());
}

TEST(Stop, PollIsAskedNowAndThen) {
  int asked = 0;
  StopScope scope({.poll = [&] { return ++asked == 2; }});
  EXPECT_TRUE(CheckStop().ok());
  for (int k = 0; k < 100; ++k) (void)CheckStop();
  EXPECT_LE(asked, 2);  // 100 checks take no 20 ms, but for a pause of the machine
  const absl::Duration end = SteadyNow() + absl::Seconds(20);
  while (CheckStop().ok() && SteadyNow() < end) {
  }
  EXPECT_EQ(CheckStop().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(asked, 2);
}

TEST(Stop, AScopeIsOfItsThread) {
  StopSource source;
  source.Request();
  StopScope scope({.source = &source});
  std::thread([] { EXPECT_TRUE(CheckStop().ok()); }).join();
}

}  // namespace
}  // namespace shardcall
