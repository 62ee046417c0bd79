// SPDX-License-Identifier: Apache-2.0
#include "shardcall/sharding/base/of_this_process.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "shardcall/sharding/base/made_at_first_use.h"
#include "tests/support/forked_child.h"

namespace shardcall {
namespace {

struct Slow {
  Slow() { std::this_thread::sleep_for(std::chrono::milliseconds(50)); }
  const pid_t process = getpid();
};

// The first test, so that nothing here has made the object before.
TEST(OfThisProcess, AChildThatIsForkedWhileAnotherThreadMakesItHasItsOwn) {
  const auto use = [] { return OfThisProcess<Slow>()->process == getpid() ? 0 : 1; };
  for (const int after : {0, 10, 30, 60}) {
    EXPECT_EQ(StatusOfForkAtFirstUse(use, std::chrono::milliseconds(after)), 0) << after << " ms";
  }
}

TEST(MadeAtFirstUse, AChildThatIsForkedWhileAnotherThreadMakesItFindsItMade) {
  const auto use = [] {
    static int makes = 0;
    MadeAtFirstUse([] {
      ++makes;
      return new Slow;
    });
    return makes == 1 ? 0 : 1;
  };
  for (const int after : {0, 10, 30, 60}) {
    EXPECT_EQ(StatusOfForkAtFirstUse(use, std::chrono::milliseconds(after)), 0) << after << " ms";
  }
}

TEST(OfThisProcess, ThreadsShareOneAndAChildHasAnother) {
  Slow* const own = OfThisProcess<Slow>();
  Slow* of_other = nullptr;
  std::thread([&] { of_other = OfThisProcess<Slow>(); }).join();
  EXPECT_EQ(of_other, own);
  EXPECT_EQ(StatusOfChild([&] {
              const Slow* of_child = OfThisProcess<Slow>();
              return of_child != own && of_child->process == getpid() ? 0 : 1;
            }),
            0);
}

}  // namespace
}  // namespace shardcall
