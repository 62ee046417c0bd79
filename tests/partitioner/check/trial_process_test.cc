// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/check/trial_process.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"

namespace shardcall {
namespace {

std::string OwnPid() { return absl::StrCat(getpid()); }

// As for the kernels of a GPU that this process uses, which its forks cannot.
TEST(TrialProcess, WithoutForksAQuestionIsAskedHere) {
  TrialProcess process(absl::Seconds(20), /*forks=*/false);
  EXPECT_EQ(process.Ask(OwnPid).text, OwnPid());
  EXPECT_EQ(process.Ask(OwnPid).text, OwnPid());
}

}  // namespace
}  // namespace shardcall
