// SPDX-License-Identifier: Apache-2.0
#include "kernels/ffi/crash_guard.h"

#include <csignal>
#include <stdexcept>
#include <thread>

#include <gtest/gtest.h>

namespace shardcall {
namespace {

TEST(CrashGuard, ABodyThatReturnsIsTrue) {
  int runs = 0;
  EXPECT_TRUE(CallCatchingSignals([&] { ++runs; }));
  EXPECT_EQ(runs, 1);
}

TEST(CrashGuard, SignalsOfTheThreadAreFalseAgainAndAgain) {
  for (int signal_number : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGSEGV}) {
    EXPECT_FALSE(CallCatchingSignals([&] { raise(signal_number); })) << signal_number;
  }
}

TEST(CrashGuard, ThrowsComeThroughAndHandlersAreAsBefore) {
  struct sigaction before = {}, after = {};
  sigaction(SIGSEGV, nullptr, &before);
  EXPECT_THROW((void)CallCatchingSignals([] { throw std::runtime_error("thrown"); }),
               std::runtime_error);
  EXPECT_FALSE(CallCatchingSignals([] { raise(SIGSEGV); }));
  sigaction(SIGSEGV, nullptr, &after);
  EXPECT_EQ(before.sa_handler, after.sa_handler);
}

TEST(CrashGuardDeathTest, OutsideACrashIsACrash) {
  EXPECT_TRUE(CallCatchingSignals([] {}));
  EXPECT_EXIT(raise(SIGSEGV), testing::KilledBySignal(SIGSEGV), "");
}

}  // namespace
}  // namespace shardcall
