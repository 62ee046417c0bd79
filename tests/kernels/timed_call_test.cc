// SPDX-License-Identifier: Apache-2.0
#include "shardcall/kernels/ffi/timed_call.h"

#include <atomic>
#include <csignal>
#include <memory>
#include <stdexcept>

#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "shardcall/kernels/ffi/abi.h"
#include "shardcall/kernels/ffi/guard/crash_guard.h"
#include "shardcall/kernels/ffi/typed_handler.h"
#include "shardcall/sharding/base/status.h"
#include "shardcall/sharding/base/steady_time.h"
#include "shardcall/sharding/base/stop.h"
#include "tests/support/forked_child.h"

namespace shardcall {
namespace {

using testing::HasSubstr;

void AwaitAll() {
  for (int k = 0; k < 2000 && CallsLeftBehind() > 0; ++k) absl::SleepFor(absl::Milliseconds(5));
  EXPECT_EQ(CallsLeftBehind(), 0);
}

TEST(CallWithin, WhatReturnsIsDoneAndWhatThrowsThrows) {
  int runs = 0;
  for (const absl::Duration deadline :
       {absl::Seconds(60), absl::Seconds(int64_t{1} << 40), absl::InfiniteDuration()}) {
    EXPECT_TRUE(CallWithin(deadline, "it", [&] { ++runs; }).ok());
    EXPECT_THROW((void)CallWithin(deadline, "it", [] { throw std::runtime_error("thrown"); }),
                 std::runtime_error);
    EXPECT_THROW((void)CallWithin(deadline, "it", [] { throw 7; }), int);
  }
  EXPECT_EQ(runs, 3);
  EXPECT_EQ(CallsLeftBehind(), 0);
}

TEST(CallWithin, WhatItCapturesIsReleasedWhenItIsDone) {
  for (int k = 0; k < 100; ++k) {
    auto used = std::make_shared<int>(0);
    const std::weak_ptr<int> seen = used;
    EXPECT_TRUE(CallWithin(absl::Seconds(60), "it", [used = std::move(used)] {}).ok());
    EXPECT_TRUE(seen.expired());
  }
}

TEST(CallWithin, ARequestToStopIsNotLeftWaiting) {
  const auto go_on = std::make_shared<std::atomic<bool>>(false);
  StopSource source;
  const StopScope scope({.source = &source, .limit = absl::Milliseconds(10)});
  const auto wait = [go_on, &source] {
    absl::SleepFor(absl::Milliseconds(50));
    source.Request();
    while (!*go_on) absl::SleepFor(absl::Milliseconds(1));
  };
  // The limit of the scope alone does not end it before its own deadline.
  const absl::Duration start = SteadyNow();
  const absl::Status status = CallWithin(absl::Seconds(60), "it", wait);
  EXPECT_EQ(DiagnosticCode(status), "E346") << status;
  EXPECT_GE(SteadyNow() - start, absl::Milliseconds(50));
  *go_on = true;
  AwaitAll();
}

TEST(CallWithin, WhatDoesNotReturnIsLeftBehindWithWhatItUses) {
  const auto go_on = std::make_shared<std::atomic<bool>>(false);
  auto used = std::make_shared<std::atomic<int>>(0);
  const std::weak_ptr<std::atomic<int>> seen = used;
  const auto wait = [go_on, used] {
    while (!*go_on) absl::SleepFor(absl::Milliseconds(1));
    ++*used;
    throw 7;  // nobody is there to catch it
  };
  used.reset();
  const absl::Status status = CallWithin(absl::Milliseconds(50), "the entry of \"x\"", wait);
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("E319 the entry of \"x\" has not returned within 50ms"));
  EXPECT_EQ(CallsLeftBehind(), 1);
  EXPECT_EQ(StatusOfChild(CallsLeftBehind), 0);  // its process does not have the thread
  EXPECT_FALSE(seen.expired());
  *go_on = true;
  AwaitAll();
}

// One thread that stays in a guarded call keeps no other from being guarded.
TEST(CallWithin, OneThatHangsInAGuardedCallLeavesTheGuardToOthers) {
  const auto go_on = std::make_shared<std::atomic<bool>>(false);
  EXPECT_FALSE(CallWithin(absl::Milliseconds(50), "it", [go_on] {
                 (void)CallCatchingSignals([&] {
                   while (!*go_on) absl::SleepFor(absl::Milliseconds(1));
                 });
               }).ok());
  EXPECT_FALSE(CallCatchingSignals([] { raise(SIGSEGV); }));
  EXPECT_TRUE(CallCatchingSignals([] {}));
  *go_on = true;
  AwaitAll();
  EXPECT_FALSE(CallCatchingSignals([] { raise(SIGSEGV); }));
}

std::atomic<bool> answer{false};
abi::Error* NeverAnswers(abi::CallFrame*) {
  while (!answer) absl::SleepFor(absl::Milliseconds(1));
  return nullptr;
}

TEST(QueryFfiMetadata, AHandlerThatDoesNotAnswerIsLeftBehind) {
  const auto answered =
      QueryFfiMetadata(NeverAnswers, "t", abi::Stage::kExecute, absl::Milliseconds(50));
  EXPECT_THAT(std::string(answered.status().message()),
              HasSubstr("E319 the handler of \"t\" for stage execute, asked for its version, has "
                        "not returned within 50ms"));
  answer = true;
  AwaitAll();
}

}  // namespace
}  // namespace shardcall
