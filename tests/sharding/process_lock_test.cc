// SPDX-License-Identifier: Apache-2.0
#include "shardcall/sharding/base/process_lock.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "shardcall/sharding/base/synchronized.h"
#include "tests/support/forked_child.h"

namespace shardcall {
namespace {

// The first test, so that nothing here has used the lock before.
TEST(ProcessLock, AChildFindsItFreeThatIsForkedAtItsFirstUse) {
  const auto use = [] {
    const std::lock_guard<ProcessLock> lock(ProcessLock::Only());
    return 0;
  };
  for (int k = 0; k < 500; ++k) ASSERT_EQ(StatusOfForkAtFirstUse(use), 0);
}

TEST(ProcessLock, AChildFindsItFreeAndItsValuesWhole) {
  Synchronized<std::map<int, int>> values;
  std::atomic<bool> done{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int k = 0; !done; ++k) {
        const auto held = values.Lock();
        (*held)[k % 100] = k;
        (*held)[-1 - k % 100] = -k;
      }
    });
  }
  for (int k = 0; k < 200; ++k) {
    const int status = StatusOfChild([&] {
      const auto held = values.Lock();
      for (const auto& [key, value] : *held) {
        if (key >= 0 && held->at(-1 - key) != -value) return 1;
      }
      return 0;
    });
    ASSERT_EQ(status, 0);
  }
  done = true;
  for (std::thread& t : threads) t.join();
}

TEST(ProcessLock, AThreadThatForksWhileItHoldsItHoldsItInTheChild) {
  Synchronized<int> value;
  const auto outer = value.Lock();
  EXPECT_EQ(StatusOfChild([&] {
              {
                const auto inner = value.Lock();
              }
              std::atomic<bool> taken{false};
              std::thread other([&] {
                const std::lock_guard<ProcessLock> lock(ProcessLock::Only());
                taken = true;
              });
              usleep(20000);
              const bool early = taken;
              ProcessLock::Only().unlock();
              other.join();
              ProcessLock::Only().lock();
              return early || !taken ? 1 : 0;
            }),
            0);
}

}  // namespace
}  // namespace shardcall
