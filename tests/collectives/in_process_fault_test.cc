// SPDX-License-Identifier: Apache-2.0
// Devices that err, leave, come late or never: everybody else gets a status that
// names them, in time, and nobody touches memory that is gone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <latch>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "absl/strings/match.h"
#include "absl/time/clock.h"
#include "shardcall/collectives/in_process/in_process.h"
#include "shardcall/sharding/base/status.h"
#include "tests/collectives/fault_cases.h"

namespace shardcall {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Body = std::function<absl::Status(Communicator&)>;

constexpr absl::Duration kDeadline = absl::Milliseconds(300);
constexpr int kSize = 4;
const std::vector<int> kAll = {0, 1, 2, 3};

// Runs body(r) on its own thread for each r; gives the status of each.
std::vector<absl::Status> RunDevices(const std::function<absl::Status(int, InProcessWorld&)>& body,
                                     absl::Duration deadline = kDeadline) {
  InProcessWorld world(kSize, deadline);
  std::vector<absl::Status> statuses(kSize);
  std::vector<std::thread> devices;
  for (int r = 0; r < kSize; ++r) {
    devices.emplace_back([&, r] { statuses[r] = body(r, world); });
  }
  for (std::thread& device : devices) device.join();
  return statuses;
}

// Buffers die right after the call, so that a late reader shows under asan.
absl::Status AllReduceOf(Communicator& c, const std::vector<int>& group, int64_t count,
                         ElementType type = ElementType::kF32) {
  auto in = std::make_unique<double[]>(count);
  auto out = std::make_unique<double[]>(count);
  return c.AllReduce(group, ReduceKind::kSum, type, in.get(), out.get(), count, {"%ar.2"});
}

double SecondsOf(const std::function<void()>& body) {
  const auto start = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void ExpectAll(const std::vector<absl::Status>& statuses, absl::string_view code,
               const ::testing::Matcher<std::string>& text, std::vector<int> ranks = kAll) {
  for (int r : ranks) {
    EXPECT_EQ(DiagnosticCode(statuses[r]), code) << "rank " << r << ": " << statuses[r];
    EXPECT_THAT(std::string(statuses[r].message()), text) << "rank " << r;
  }
}

TEST(InProcessFault, AnAbsentRankIsNamedToAllWhoWaitWithinTwiceTheDeadline) {
  std::vector<double> seconds(kSize);
  std::atomic<int> gave_up{0};
  const std::vector<absl::Status> statuses = RunDevices([&](int r, InProcessWorld& world) {
    auto c = world.Rank(r);
    SHARDCALL_RETURN_IF_ERROR(c->Barrier(kAll, {"%first"}));
    while (r == 1 && gave_up < kSize - 1) {  // in a kernel
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    absl::Status status;
    seconds[r] = SecondsOf([&] { status = AllReduceOf(*c, kAll, 1000); });
    ++gave_up;
    return status;
  });
  for (double waited : seconds) EXPECT_LT(waited, 1.5);  // on a machine that does much else
  ExpectAll(statuses, "E301",
            AllOf(HasSubstr("all-reduce(sum, f32[1000]) #2 (%ar.2)"),
                  HasSubstr("ranks 0,2,3 have waited 300ms"),
                  HasSubstr("rank 1 last completed barrier #1 (%first) and is in no collective")));
  EXPECT_EQ(statuses[0].code(), absl::StatusCode::kDeadlineExceeded);
}

TEST(InProcessFault, ARankInAnotherGroupsCallIsNamedWithThatCall) {
  std::latch through(kSize);
  const auto statuses = RunDevices([&](int r, InProcessWorld& world) {
    auto c = world.Rank(r);
    if (r == 1) std::this_thread::sleep_for(std::chrono::milliseconds(50));
    absl::Status status = AllReduceOf(*c, r == 1 ? std::vector<int>{1, 2} : kAll, 8);
    // Stay, so that time and not leaving ends the wait.
    through.arrive_and_wait();
    return status;
  });
  ExpectAll(statuses, "E301", HasSubstr("rank 1 has waited"), {0, 2, 3});
  ExpectAll(statuses, "E301", HasSubstr("rank 2 last failed in all-reduce"), {1});
}

TEST(InProcessFault, DifferentOpsAreAnErrorOnEveryMemberAtOnce) {
  std::vector<absl::Status> statuses;
  const double seconds = SecondsOf([&] {
    statuses = RunDevices(
        [](int r, InProcessWorld& world) {
          auto c = world.Rank(r);
          if (r != 2) return AllReduceOf(*c, kAll, 8);
          char out[16];
          return c->AllGather(kAll, "abcd", out, 4, {"%ag"});
        },
        absl::Seconds(20));
  });
  EXPECT_LT(seconds, 5);
  ExpectAll(statuses, "E305",
            AllOf(HasSubstr("ranks 0,1,3 call all-reduce(sum, f32[8]) (%ar.2)"),
                  HasSubstr("rank 2 calls all-gather(4 bytes) (%ag)")));
}

TEST(InProcessFault, DifferentSizesAreAnErrorOnEveryMember) {
  const auto statuses = RunDevices([](int r, InProcessWorld& world) {
    return AllReduceOf(*world.Rank(r), kAll, r == 0 ? 100000 : 8);
  });
  ExpectAll(statuses, "E305", HasSubstr("rank 0 calls all-reduce(sum, f32[100000])"));
}

TEST(InProcessFault, DifferentTypesAreAnErrorOnEveryMember) {
  const auto statuses = RunDevices([](int r, InProcessWorld& world) {
    return AllReduceOf(*world.Rank(r), kAll, 8, r == 3 ? ElementType::kS32 : ElementType::kF32);
  });
  ExpectAll(statuses, "E305", HasSubstr("rank 3 calls all-reduce(sum, s32[8])"));
}

TEST(InProcessFault, DifferentRootsAreAnErrorOnEveryMember) {
  const auto statuses = RunDevices([](int r, InProcessWorld& world) {
    char buffer[4] = {};
    return world.Rank(r)->Broadcast(kAll, r == 0 ? 1 : 0, buffer, 4, {"%cb"});
  });
  ExpectAll(statuses, "E305",
            HasSubstr("rank 0 calls collective-broadcast(4 bytes from member 1)"));
}

TEST(InProcessFault, DifferentGroupOrdersAreAnErrorOnEveryMember) {
  const auto statuses = RunDevices([](int r, InProcessWorld& world) {
    return AllReduceOf(*world.Rank(r), r == 1 ? std::vector<int>{3, 2, 1, 0} : kAll, 8);
  });
  ExpectAll(statuses, "E305", HasSubstr("in the order 3,2,1,0"));
}

TEST(InProcessFault, RaggedBlocksThatDisagreeAreAnErrorOnEveryMember) {
  const auto statuses = RunDevices([](int r, InProcessWorld& world) {
    char in[64] = {}, out[64] = {};
    const std::vector<int64_t> offsets = {0, 8, 16, 24}, eight(4, 8);
    std::vector<int64_t> sizes = eight;
    if (r == 2) sizes[0] = 4;
    return world.Rank(r)->AllToAllV(kAll, in, offsets, sizes, out, offsets, eight, {"%ra2a"});
  });
  ExpectAll(statuses, "E305",
            AllOf(HasSubstr("with 4 bytes for rank 0"), HasSubstr("with 8 bytes from rank 2")));
}

TEST(InProcessFault, ADeviceThatLeavesEndsTheWaitOfItsGroupsOnly) {
  const auto statuses = RunDevices(
      [](int r, InProcessWorld& world) {
        auto c = world.Rank(r);
        if (r == 3) return c->Barrier({2, 3}, {"%last"});  // and leaves
        if (r == 2) {
          SHARDCALL_RETURN_IF_ERROR(c->Barrier({2, 3}, {"%last"}));
          return AllReduceOf(*c, kAll, 8);
        }
        const absl::Status all = AllReduceOf(*c, kAll, 8);
        const absl::Status pair = AllReduceOf(*c, {0, 1}, 8);
        EXPECT_TRUE(pair.ok()) << pair;
        return all;
      },
      absl::Seconds(20));
  ExpectAll(statuses, "E304",
            HasSubstr("needs rank 3, which last completed barrier #1 (%last) and has left"),
            {0, 1, 2});
  EXPECT_TRUE(statuses[3].ok());
}

TEST(InProcessFault, AbortWakesEverybodyAndIsFinal) {
  const auto statuses = RunDevices(
      [](int r, InProcessWorld& world) {
        auto c = world.Rank(r);
        if (r == 0) {
          std::this_thread::sleep_for(std::chrono::milliseconds(50));
          c->Abort(absl::InternalError("device 0 ran out of memory"));
        } else if (r == 3) {
          float x;
          EXPECT_FALSE(c->Recv(2, &x, 4, {"%recv"}).ok());
        } else {
          EXPECT_FALSE(AllReduceOf(*c, kAll, 8).ok());
        }
        const absl::Status old_group = AllReduceOf(*c, kAll, 8);
        EXPECT_EQ(old_group.code(), absl::StatusCode::kAborted);
        const absl::Status new_group = AllReduceOf(*c, {r}, 8);
        EXPECT_EQ(new_group.code(), absl::StatusCode::kAborted);
        float y = 0;
        return c->Permute({}, &y, &y, 4, {"%cp"});
      },
      absl::Seconds(20));
  ExpectAll(statuses, "E304", HasSubstr("device 0 ran out of memory"));
  EXPECT_EQ(statuses[2].code(), absl::StatusCode::kAborted);
}

TEST(InProcessFault, APermuteWithAnAbsentPartnerNamesItAndFreesTheOthers) {
  const std::vector<std::pair<int, int>> ring = {{0, 1}, {1, 2}, {2, 3}, {3, 0}};
  std::latch others(kSize - 1);
  const auto statuses = RunDevices([&](int r, InProcessWorld& world) {
    auto c = world.Rank(r);
    absl::Status status;
    if (r == 1) {
      others.wait();
      return status;
    }
    auto in = std::make_unique<char[]>(1000);
    auto out = std::make_unique<char[]>(1000);
    status = c->Permute(ring, in.get(), out.get(), 1000, {"%cp"});
    others.count_down();
    return status;
  });
  ExpectAll(statuses, "E301",
            AllOf(HasSubstr("collective-permute(1000 bytes) #1 (%cp)"), HasSubstr("rank 1 has")),
            {0, 2});
}

TEST(InProcessFault, SendAndReceiveThatDisagreeAreAnErrorOnBoth) {
  const auto statuses = RunDevices([](int r, InProcessWorld& world) {
    auto c = world.Rank(r);
    char data[16] = {};
    if (r == 0) return c->Send(1, data, 8, {"%send"});
    if (r == 1) return c->Recv(0, data, 16, {"%recv"});
    return absl::OkStatus();
  });
  ExpectAll(statuses, "E305",
            AllOf(HasSubstr("rank 0 calls send(8 bytes) (%send)"),
                  HasSubstr("rank 1 calls recv(16 bytes) (%recv)")),
            {0, 1});
}

TEST(InProcessFault, TimeOutsRacingWithArrivalsNeverTouchDeadBuffers) {
  // The last rank arrives at about the moment the others give up.
  for (int round = 0; round < 60; ++round) {
    const auto statuses = RunDevices(
        [round](int r, InProcessWorld& world) {
          auto c = world.Rank(r);
          if (r == 3) std::this_thread::sleep_for(std::chrono::microseconds(4700 + 10 * round));
          return AllReduceOf(*c, kAll, 20000);
        },
        absl::Milliseconds(5));
    for (const absl::Status& status : statuses) {
      EXPECT_TRUE(status.ok() || DiagnosticCode(status) == "E301") << status;
    }
  }
}

// The cases that every backend has, by number of devices.
class InProcessFaultCase : public ::testing::TestWithParam<std::tuple<int, size_t>> {};

TEST_P(InProcessFaultCase, EverySurvivorGetsATypedErrorInTime) {
  const int size = std::get<0>(GetParam());
  const testing::FaultCase& fault = testing::FaultCases()[std::get<1>(GetParam())];
  testing::FaultHooks hooks;
  hooks.deadline = absl::Milliseconds(700);  // busy machines run devices far apart
  // A device that is killed leaves; one that stops blocks, until all is over.
  hooks.stop = [&] {
    absl::SleepFor(3 * hooks.deadline);
    return absl::CancelledError("stopped");
  };
  InProcessWorld world(size, hooks.deadline);
  std::vector<std::thread> devices;
  std::vector<std::string> complaints(size);
  std::latch judged(size);
  for (int r = 0; r < size; ++r) {
    devices.emplace_back([&, r] {
      auto c = world.Rank(r);
      // To be killed is to drop the communicator.
      if (r == 1 && absl::StartsWith(fault.name, "Killed")) {
        std::vector<int> all(size);
        std::iota(all.begin(), all.end(), 0);
        EXPECT_TRUE(c->Barrier(all, {"%first"}).ok());
        c.reset();
        judged.count_down();
        return;
      }
      const testing::FaultResult result = testing::RunFault(fault, *c, hooks);
      complaints[r] = testing::Judge(fault, result, r, hooks.deadline);
      // Nobody leaves before all have their error, for that would be another one.
      judged.arrive_and_wait();
    });
  }
  for (std::thread& device : devices) device.join();
  for (int r = 0; r < size; ++r) EXPECT_EQ(complaints[r], "") << "rank " << r;
}

INSTANTIATE_TEST_SUITE_P(AllCases, InProcessFaultCase,
                         ::testing::Combine(::testing::Values(2, 3, 4, 8),
                                            ::testing::Range<size_t>(0,
                                                                     testing::FaultCases().size())),
                         [](const auto& info) {
                           return testing::FaultCases()[std::get<1>(info.param)].name + "On" +
                                  std::to_string(std::get<0>(info.param));
                         });

}  // namespace
}  // namespace shardcall
