// SPDX-License-Identifier: Apache-2.0
// Collectives that go on while their device computes.
#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <thread>

#include "absl/strings/str_replace.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "shardcall/collectives/in_process/in_process.h"
#include "shardcall/partitioner/runtime/execute/started_calls.h"
#include "tests/partitioner/runtime/run_text.h"

namespace shardcall {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr char kAdd[] =
    "add {\n a = s32[] parameter(0)\n b = s32[] parameter(1)\n ROOT r = s32[] add(a, b)\n}\n";

std::string Entry(absl::string_view body) {
  return absl::StrCat(kAdd, "ENTRY e {\n p = s32[4] parameter(0)\n", body, "\n}\n");
}

// Device d's argument is {d, 10 d, 100 d, 1}. Each device's first result.
absl::StatusOr<std::vector<std::vector<double>>> RunDevices(
    absl::string_view text, int n, const HandlerRegistry* handlers = nullptr,
    absl::Duration deadline = absl::Seconds(20)) {
  SHARDCALL_ASSIGN_OR_RETURN(const std::shared_ptr<const DeviceProgram> program,
                             LowerText(text, absl::StrCat("num_partitions=", n)));
  std::vector<std::vector<Tensor>> lists;
  for (int d = 0; d < n; ++d) lists.push_back({S32({4}, {d, 10 * d, 100 * d, 1})});
  SHARDCALL_ASSIGN_OR_RETURN(const std::vector<std::vector<Tensor>> results,
                             RunOnThreads(*program, lists, n, handlers, deadline));
  std::vector<std::vector<double>> out;
  for (const auto& r : results) out.push_back(Numbers(r[0]));
  return out;
}

constexpr char kGroups[] = "channel_id=1, replica_groups={{0,1}}, use_global_device_ids=true";

TEST(Started, EveryFormGivesWhatTheCollectiveGives) {
  const struct {
    const char *started, *plain;
  } kForms[] = {
      {"s = s32[4] all-reduce-start(p), $, to_apply=add\nn = s32[4] negate(p)\n"
       "d = s32[4] all-reduce-done(s)\nROOT r = s32[4] subtract(d, n)",
       "d = s32[4] all-reduce(p), $, to_apply=add\nn = s32[4] negate(p)\n"
       "ROOT r = s32[4] subtract(d, n)"},
      {"m = s32[4] multiply(p, p)\n"
       "s = (s32[4], s32[4]) all-reduce-start(p, m), $, to_apply=add\n"
       "d = (s32[4], s32[4]) all-reduce-done(s)\nx = s32[4] get-tuple-element(d), index=0\n"
       "y = s32[4] get-tuple-element(d), index=1\nROOT r = s32[4] subtract(x, y)",
       "m = s32[4] multiply(p, p)\nx = s32[4] all-reduce(p), $, to_apply=add\n"
       "y = s32[4] all-reduce(m), $, to_apply=add\nROOT r = s32[4] subtract(x, y)"},
      {"s = (s32[4], s32[8]) all-gather-start(p), $, dimensions={0}\n"
       "ROOT d = s32[8] all-gather-done(s)",
       "ROOT d = s32[8] all-gather(p), $, dimensions={0}"},
      {"s = (s32[4], s32[4], u32[], u32[]) collective-permute-start(p), channel_id=1, "
       "source_target_pairs={{0,1}}\nROOT d = s32[4] collective-permute-done(s)",
       "ROOT d = s32[4] collective-permute(p), channel_id=1, source_target_pairs={{0,1}}"},
      {"s = ((s32[4]), s32[2]) reduce-scatter-start(p), $, dimensions={0}, to_apply=add\n"
       "u = ((s32[4]), s32[2]) reduce-scatter-update(s)\n"
       "ROOT d = s32[2] reduce-scatter-done(u)",
       "ROOT d = s32[2] reduce-scatter(p), $, dimensions={0}, to_apply=add"},
      {"n = s32[4] negate(p)\n"
       "s = ((s32[4], s32[4]), (s32[4], s32[4])) all-to-all-start(p, n), channel_id=1, "
       "replica_groups={{0,1}}\nd = (s32[4], s32[4]) all-to-all-done(s)\n"
       "x = s32[4] get-tuple-element(d), index=0\ny = s32[4] get-tuple-element(d), index=1\n"
       "ROOT r = s32[8] concatenate(x, y), dimensions={0}",
       "n = s32[4] negate(p)\n"
       "d = (s32[4], s32[4]) all-to-all(p, n), channel_id=1, replica_groups={{0,1}}\n"
       "x = s32[4] get-tuple-element(d), index=0\ny = s32[4] get-tuple-element(d), index=1\n"
       "ROOT r = s32[8] concatenate(x, y), dimensions={0}"},
  };
  for (const auto& form : kForms) {
    auto text = [](absl::string_view body) {
      return Entry(absl::StrReplaceAll(body, {{"$", kGroups}}));
    };
    const auto started = RunDevices(text(form.started), 2);
    const auto plain = RunDevices(text(form.plain), 2);
    ASSERT_TRUE(started.ok()) << started.status() << "\n" << form.started;
    ASSERT_TRUE(plain.ok()) << plain.status() << "\n" << form.plain;
    EXPECT_EQ(*started, *plain) << form.started;
  }
}

TEST(Started, AnAsyncStartOfOtherThanACollectiveRunsAtOnce) {
  const auto r = RunDevices(Entry("s = ((s32[4]), s32[4]) negate-start(p)\n"
                                  "ROOT d = s32[4] negate-done(s)"),
                            2);
  ASSERT_TRUE(r.ok()) << r.status();
  EXPECT_THAT((*r)[1], ElementsAre(-1, -10, -100, -1));
}

// Two handlers: `late` holds device 1 back until device 0 has come to `between`.
// So a start that waited for the other device could never return.
class Meanwhile : public testing::Test {
 protected:
  Meanwhile() {
    Add("late", [this](const HandlerContext& c) {
      const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(15);
      while (c.device_ordinal == 1 && !reached_ && std::chrono::steady_clock::now() < end) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
      return absl::OkStatus();
    });
    Add("between", [this](const HandlerContext& c) {
      if (c.device_ordinal == 0) reached_ = true;
      return absl::OkStatus();
    });
  }
  void Add(absl::string_view name, std::function<absl::Status(const HandlerContext&)> act) {
    HandlerEntry entry;
    entry.target = std::string(name);
    entry.host = [act](const HandlerContext& c, absl::Span<const BufferView> in,
                       absl::Span<const BufferView> out) {
      std::memcpy(out[0].data, in[0].data, 4 * sizeof(int32_t));
      return act(c);
    };
    ASSERT_TRUE(handlers_.Register(std::move(entry)).ok());
  }

  HandlerRegistry handlers_;
  std::atomic<bool> reached_{false};
};

TEST_F(Meanwhile, TheDeviceComputesWhileThePeerHasNotCome) {
  const auto r =
      RunDevices(Entry(absl::StrCat("g = s32[4] custom-call(p), custom_call_target=\"late\"\n"
                                    "s = s32[4] all-reduce-start(g), ",
                                    kGroups,
                                    ", to_apply=add\n"
                                    "b = s32[4] custom-call(p), custom_call_target=\"between\"\n"
                                    "d = s32[4] all-reduce-done(s)\nROOT r = s32[4] add(d, b)")),
                 2, &handlers_);
  ASSERT_TRUE(r.ok()) << r.status();
  EXPECT_THAT(*r, ElementsAre(ElementsAre(1, 10, 100, 3), ElementsAre(2, 20, 200, 3)));
}

TEST_F(Meanwhile, WhatIsUnderWayIsNotOverwrittenByOpsThatWorkInPlace) {
  // q dies at `n`, which would take its buffer were it not being sent.
  const auto r =
      RunDevices(Entry(absl::StrCat("g = s32[4] custom-call(p), custom_call_target=\"late\"\n"
                                    "q = s32[4] add(g, p)\n"
                                    "s = (s32[4], s32[8]) all-gather-start(q), ",
                                    kGroups,
                                    ", dimensions={0}\n"
                                    "n = s32[4] negate(q)\n"
                                    "b = s32[4] custom-call(n), custom_call_target=\"between\"\n"
                                    "d = s32[8] all-gather-done(s)\n"
                                    "ROOT r = s32[12] concatenate(d, b), dimensions={0}")),
                 2, &handlers_);
  ASSERT_TRUE(r.ok()) << r.status();
  EXPECT_THAT((*r)[1], ElementsAre(0, 0, 0, 2, 2, 20, 200, 2, -2, -20, -200, -2));
}

TEST_F(Meanwhile, CollectivesInBetweenRunBehindIt) {
  const auto r =
      RunDevices(Entry(absl::StrCat(
                     "s = s32[4] all-reduce-start(p), ", kGroups, ", to_apply=add\n",
                     "t = (s32[4], s32[8]) all-gather-start(p), ", kGroups, ", dimensions={0}\n",
                     "m = s32[4] all-reduce(p), ", kGroups, ", to_apply=add\n",
                     "e = s32[8] all-gather-done(t)\nd = s32[4] all-reduce-done(s)\n"
                     "x = s32[4] add(d, m)\nROOT r = s32[12] concatenate(x, e), dimensions={0}")),
                 2, &handlers_);
  ASSERT_TRUE(r.ok()) << r.status();
  EXPECT_THAT((*r)[0], ElementsAre(2, 20, 200, 4, 0, 0, 0, 1, 1, 10, 100, 1));
}

TEST_F(Meanwhile, APeerThatNeverStartsIsNamedWithTheInstruction) {
  // Device 1 computes until device 0 has given up, however long that takes: collectives have
  // a deadline here, handlers have none.
  absl::Notification gave_up;
  Add("slow", [&](const HandlerContext& c) {
    if (c.device_ordinal == 1) gave_up.WaitForNotification();
    return absl::OkStatus();
  });
  const auto program =
      LowerText(Entry(absl::StrCat("first = s32[4] all-reduce(p), ", kGroups,
                                   ", to_apply=add\n"
                                   "g = s32[4] custom-call(first), custom_call_target=\"slow\"\n"
                                   "sum.7 = s32[4] all-reduce-start(g), ",
                                   kGroups,
                                   ", to_apply=add\n"
                                   "n = s32[4] negate(p)\nd = s32[4] all-reduce-done(sum.7)\n"
                                   "ROOT r = s32[4] add(d, n)")),
                "num_partitions=2");
  ASSERT_TRUE(program.ok()) << program.status();
  InProcessWorld world(2, absl::Seconds(2));
  const auto run = [&](int d) {
    const std::unique_ptr<Communicator> comm = world.Rank(d);
    StartedCalls started(comm.get(), /*meanwhile=*/true);
    DeviceContext device;
    device.device = d;
    device.num_devices = 2;
    device.comm = started.comm();
    device.started = &started;
    device.handlers = &handlers_;
    return Execute(**program, std::vector<Tensor>{S32({4}, {1, 2, 3, 4})}, device).status();
  };
  absl::Status of_1;
  std::thread device_1([&] { of_1 = run(1); });
  const absl::Status of_0 = run(0);
  gave_up.Notify();
  device_1.join();
  for (const absl::Status& status : {of_0, of_1}) {
    EXPECT_EQ(DiagnosticCode(status), "E301") << status;
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr("sum.7"), HasSubstr("rank 1"), HasSubstr("first")));
  }
}

TEST_F(Meanwhile, AFailureInBetweenIsReportedAtOnceAndAlone) {
  Add("fail_on_1", [](const HandlerContext& c) {
    return c.device_ordinal == 1 ? absl::InternalError("no luck") : absl::OkStatus();
  });
  // Device 1 has started what device 0 never comes to.
  Add("wait_on_0", [](const HandlerContext& c) {
    if (c.device_ordinal == 0) absl::SleepFor(absl::Milliseconds(300));
    return absl::OkStatus();
  });
  const absl::Time start = absl::Now();
  const auto r =
      RunDevices(Entry(absl::StrCat("g = s32[4] custom-call(p), custom_call_target=\"wait_on_0\"\n"
                                    "s = s32[4] all-reduce-start(g), ",
                                    kGroups,
                                    ", to_apply=add\n"
                                    "f = s32[4] custom-call(p), custom_call_target=\"fail_on_1\"\n"
                                    "d = s32[4] all-reduce-done(s)\nROOT r = s32[4] add(d, f)")),
                 2, &handlers_, absl::Seconds(60));
  EXPECT_EQ(DiagnosticCode(r.status()), "E317") << r.status();
  EXPECT_THAT(std::string(r.status().message()), HasSubstr("no luck"));
  EXPECT_LT(absl::Now() - start, absl::Seconds(50));
}

TEST(Started, InLoopsAndInCallsManyTimes) {
  const auto r = RunDevices(
      absl::StrCat(
          kAdd, "step {\n v = s32[4] parameter(0)\n", " s = s32[4] all-reduce-start(v), ", kGroups,
          ", to_apply=add\n", " n = s32[4] negate(v)\n d = s32[4] all-reduce-done(s)\n",
          " ROOT r = s32[4] add(d, n)\n}\n",
          "body {\n t = (s32[], s32[4]) parameter(0)\n i = s32[] get-tuple-element(t), index=0\n"
          " v = s32[4] get-tuple-element(t), index=1\n one = s32[] constant(1)\n"
          " j = s32[] add(i, one)\n w = s32[4] call(v), to_apply=step\n"
          " ROOT u = (s32[], s32[4]) tuple(j, w)\n}\n"
          "go {\n t = (s32[], s32[4]) parameter(0)\n i = s32[] get-tuple-element(t), index=0\n"
          " n = s32[] constant(301)\n ROOT l = pred[] compare(i, n), direction=LT\n}\n"
          "ENTRY e {\n p = s32[4] parameter(0)\n z = s32[] constant(0)\n"
          " t = (s32[], s32[4]) tuple(z, p)\n"
          " w = (s32[], s32[4]) while(t), condition=go, body=body\n"
          " ROOT r = s32[4] get-tuple-element(w), index=1\n}\n"),
      2);
  // Each step gives every device its peer's values: an odd number of swaps.
  ASSERT_TRUE(r.ok()) << r.status();
  EXPECT_THAT(*r, ElementsAre(ElementsAre(1, 10, 100, 1), ElementsAre(0, 0, 0, 1)));
}

TEST(Started, OneDeviceWithoutACommunicatorRunsIt) {
  EXPECT_THAT(Eval(absl::StrCat(kAdd,
                                "ENTRY e {\n p = s32[2] parameter(0)\n"
                                " s = s32[2] all-reduce-start(p), replica_groups={}, to_apply=add\n"
                                " ROOT d = s32[2] all-reduce-done(s)\n}\n"),
                   {S32({2}, {3, 4})}),
              ElementsAre(3, 4));
}

}  // namespace
}  // namespace shardcall
