// SPDX-License-Identifier: Apache-2.0
#include "shardcall/sharding/base/near_names.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace shardcall {
namespace {

using ::testing::ElementsAre;

TEST(NearNames, EditDistanceCountsInsertionsDeletionsAndSubstitutions) {
  EXPECT_EQ(EditDistance("", ""), 0);
  EXPECT_EQ(EditDistance("abc", ""), 3);
  EXPECT_EQ(EditDistance("kitten", "sitting"), 3);
  EXPECT_EQ(EditDistance("abc", "abc"), 0);
}

TEST(NearNames, NearestFirstAndNoMoreThanAsked) {
  EXPECT_THAT(NearNames("norm", {"norms", "rms_norm", "nurm", "gemm", "attention"}, 3),
              ElementsAre("norms", "nurm", "rms_norm"));
  EXPECT_TRUE(NearNames(std::string(100000, 'a'), {"aaa"}).empty());
}

}  // namespace
}  // namespace shardcall
