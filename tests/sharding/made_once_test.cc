// SPDX-License-Identifier: Apache-2.0
#include "shardcall/sharding/base/made_once.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "tests/support/forked_child.h"

namespace shardcall {
namespace {

using Value = std::shared_ptr<const int>;

absl::StatusOr<Value> MakeSlowly(int value) {
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  return std::make_shared<const int>(value);
}

TEST(MadeOnce, OneThreadMakesAValueForAllThatAskForItsKey) {
  MadeOnce<std::string, Value> values;
  std::atomic<int> makes{0}, wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      const int key = t % 2;
      const auto made = values.GetOrMake(std::to_string(key), [&] {
        ++makes;
        return MakeSlowly(key);
      });
      if (!made.ok() || **made != key) ++wrong;
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(makes, 2);
  EXPECT_EQ(wrong, 0);
}

TEST(MadeOnce, FailuresAreNotKept) {
  MadeOnce<int, Value> values;
  const auto fails = []() -> absl::StatusOr<Value> { return absl::InternalError("no"); };
  EXPECT_EQ(values.GetOrMake(1, fails).status().message(), "no");
  EXPECT_EQ(**values.GetOrMake(1, [] { return MakeSlowly(3); }), 3);
  EXPECT_EQ(**values.GetOrMake(1, fails), 3);
}

TEST(MadeOnce, BeyondTheMostAllAreForgotten) {
  MadeOnce<int, Value> values(2);
  int makes = 0;
  const auto ask = [&](int key) {
    return **values.GetOrMake(key, [&]() -> absl::StatusOr<Value> {
      ++makes;
      return std::make_shared<const int>(key);
    });
  };
  for (int key : {1, 2, 2, 1}) EXPECT_EQ(ask(key), key);
  EXPECT_EQ(makes, 2);
  for (int key : {3, 3, 1, 3}) EXPECT_EQ(ask(key), key);
  EXPECT_EQ(makes, 4);
}

TEST(MadeOnce, WhatIsForgottenMayWaitForOtherThreadsAsItIsFreed) {
  std::atomic<int> freed{0};
  const auto make = [&]() -> absl::StatusOr<Value> {
    return Value(new int(1), [&](const int* value) {
      std::thread([&] {
        const std::lock_guard<ProcessLock> lock(ProcessLock::Only());
        ++freed;
      }).join();
      delete value;
    });
  };
  MadeOnce<int, Value> values(2);
  for (int key = 0; key < 5; ++key) EXPECT_TRUE(values.GetOrMake(key, make).ok());
  EXPECT_EQ(freed, 4);
}

TEST(MadeOnce, AChildMakesWhatAThreadOfItsParentWasMaking) {
  MadeOnce<int, Value> values;
  const auto use = [&] {
    const auto made = values.GetOrMake(1, [] { return MakeSlowly(5); });
    return made.ok() && **made == 5 ? 0 : 1;
  };
  for (const int after : {0, 10, 30, 60}) {
    EXPECT_EQ(StatusOfForkAtFirstUse(use, std::chrono::milliseconds(after)), 0) << after << " ms";
  }
}

}  // namespace
}  // namespace shardcall
