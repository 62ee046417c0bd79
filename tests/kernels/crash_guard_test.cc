// SPDX-License-Identifier: Apache-2.0
#include "shardcall/kernels/ffi/guard/crash_guard.h"

#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <stdexcept>
#include <thread>

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

int Deep(int n) {
  volatile char room[1024];
  room[n % 1024] = 1;
  return n < 0 ? 0 : Deep(n + 1) + room[n % 1024];
}

TEST(CrashGuard, AnAbortAndAStackThatIsTooDeepAreFalse) {
  EXPECT_FALSE(CallCatchingSignals([] { std::abort(); }));
  EXPECT_FALSE(CallCatchingSignals([] { Deep(1); }));
  EXPECT_TRUE(CallCatchingSignals([] {}));
}

TEST(CrashGuard, ACallWithinACallIsPartOfIt) {
  bool inner = false;
  EXPECT_TRUE(CallCatchingSignals([&] { inner = CallCatchingSignals([] {}); }));
  EXPECT_TRUE(inner);
  EXPECT_FALSE(CallCatchingSignals([] { (void)CallCatchingSignals([] { raise(SIGSEGV); }); }));
}

TEST(CrashGuard, WhatWritesPastFencedMemoryStopsThere) {
  const FencedMemory memory(100);
  ASSERT_NE(memory.data(), nullptr);
  volatile char* const bytes = static_cast<char*>(memory.data());
  EXPECT_TRUE(CallCatchingSignals([&] {
    for (int k = 0; k < 100; ++k) bytes[k] = 1;
  }));
  EXPECT_FALSE(CallCatchingSignals([&] {
    for (int k = 0; k < 4096; ++k) bytes[k] = 2;
  }));
}

TEST(CrashGuardDeathTest, OutsideACrashIsACrash) {
  EXPECT_TRUE(CallCatchingSignals([] {}));
  EXPECT_EXIT(raise(SIGSEGV), testing::KilledBySignal(SIGSEGV), "");
}

}  // namespace
}  // namespace shardcall
