// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/check/trial_process.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "shardcall/sharding/base/stop.h"

namespace shardcall {
namespace {

std::string OwnPid() { return absl::StrCat(getpid()); }

// As for the kernels of a GPU that this process uses, which its forks cannot.
TEST(TrialProcess, WithoutForksAQuestionIsAskedHere) {
  TrialProcess process(absl::Seconds(20), /*forks=*/false);
  EXPECT_EQ(process.Ask(OwnPid).text, OwnPid());
  EXPECT_EQ(process.Ask(OwnPid).text, OwnPid());
}

TEST(TrialProcess, IsStoppedWhileItWaitsForAnAnswer) {
  StopScope scope({.limit = absl::Milliseconds(200)});
  TrialProcess process(absl::Hours(1));
  const absl::Time start = absl::Now();
  for (int k = 0; k < 3; ++k) {
    const TrialProcess::Answer late = process.Ask([] {
      absl::SleepFor(absl::Hours(1));
      return std::string("slept");
    });
    EXPECT_EQ(late.end, TrialProcess::Answer::End::kLate);
  }
  EXPECT_LT(absl::Now() - start, absl::Minutes(1));
  EXPECT_FALSE(scope.Check().ok());
}

}  // namespace
}  // namespace shardcall
