// SPDX-License-Identifier: Apache-2.0
#include "shardcall/collectives/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "shardcall/collectives/flight_recorder.h"
#include "shardcall/collectives/nccl/nccl.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
namespace {

using ::testing::HasSubstr;

TEST(Report, RankListsJoinRuns) {
  EXPECT_EQ(RankListText({0, 2, 3, 4, 7, 6}), "0,2-4,6,7");
  EXPECT_EQ(RanksText({5}), "rank 5");
  EXPECT_EQ(RankListText({}), "");
}

TEST(Report, ADeadlineNamesWhoWaitsWhoIsAbsentAndWhatItDidLast) {
  FlightRecorder recorder;
  recorder.Begin({.op = CollectiveOp::kAllGather, .amount = 64}, {0, 1}, "%ag.1");
  recorder.End(true);
  LateReport report;
  report.signature = {CollectiveOp::kAllReduce, ReduceKind::kSum, ElementType::kF32, -1, 8};
  report.number = 14;
  report.name = "%ar.2";
  report.waiting = {0, 2, 3};
  report.absent = {1};
  report.waited = absl::Seconds(20);
  report.last = {recorder.Summary()};
  const absl::Status status = LateStatus(report);
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("E301 all-reduce(sum, f32[8]) #14 (%ar.2): ranks 0,2,3 have waited 20s; "
                        "rank 1 last completed all-gather(64 bytes) #1 (%ag.1) and is in no "
                        "collective"));
}

TEST(Report, AMismatchGivesEachCallWithItsRanks) {
  const absl::Status status = MismatchStatus({{0, "a"}, {1, "b"}, {2, "b"}});
  EXPECT_EQ(DiagnosticCode(status), "E305");
  EXPECT_THAT(std::string(status.message()), HasSubstr("rank 0 calls a; ranks 1,2 call b"));
}

TEST(FlightRecorder, KeepsTheLastCallsInOrder) {
  FlightRecorder recorder;
  EXPECT_EQ(recorder.Summary(), "has called no collective yet");
  for (int i = 0; i < 20; ++i) {
    recorder.Begin({.op = CollectiveOp::kBarrier}, {0, 1, 2}, "%b");
    if (i < 19) recorder.End(true);
  }
  const std::string history = recorder.History("");
  EXPECT_THAT(history, HasSubstr("#13 barrier (%b) over 0-2: done\n"));
  EXPECT_THAT(history, HasSubstr("#20 barrier (%b) over 0-2: waiting"));
  EXPECT_THAT(history, ::testing::Not(HasSubstr("#12 ")));
  EXPECT_THAT(recorder.Summary(), HasSubstr("s in barrier #20 (%b) over 0-2"));
}

TEST(Nccl, IsATypedErrorWhereItIsNotThere) {
  const auto communicator = ConnectNccl(absl::Seconds(1));
  if (communicator.ok()) GTEST_SKIP() << "there is a CUDA device";
  EXPECT_EQ(communicator.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(DiagnosticCode(communicator.status()), "E303");
}

}  // namespace
}  // namespace shardcall
