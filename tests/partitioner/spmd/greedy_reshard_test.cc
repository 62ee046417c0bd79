// SPDX-License-Identifier: Apache-2.0
// What the greedy planner of reshards plans gives the values of one device.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "shardcall/partitioner/api/warnings.h"
#include "shardcall/partitioner/ir/text/parser.h"
#include "shardcall/sharding/reshard/reshard_search.h"
#include "tests/support/verify_text.h"

namespace shardcall {
namespace {

using testing::Contains;
using testing::Field;

// A sharding of an array of `rank` dimensions over all or some axes of size 2.
std::string RandomSharding(std::mt19937& random, int axes, int rank, bool all) {
  std::vector<int> order(axes);
  for (int k = 0; k < axes; ++k) order[k] = k;
  std::shuffle(order.begin(), order.end(), random);
  std::vector<std::vector<int>> places(rank + 1);
  for (int k : order) places[random() % (rank + (all ? 0 : 1))].push_back(k);
  std::vector<int> tiles, perm;
  for (const std::vector<int>& place : places) {
    tiles.push_back(1 << place.size());
    perm.insert(perm.end(), place.begin(), place.end());
  }
  return absl::StrCat("{devices=[", absl::StrJoin(tiles, ","), "]<=[",
                      absl::StrJoin(std::vector<int>(axes, 2), ","), "]T(",
                      absl::StrJoin(perm, ","), ") last_tile_dim_replicate}");
}

// Partitions, with so many states for the search of a reshard, runs, and compares bits.
std::string WhyWrong(const std::string& text, int64_t states) {
  auto context = std::make_shared<Context>();
  context->Get<internal::ReshardBudget>().states = states;
  absl::StatusOr<Module> module =
      ParseModule(std::make_shared<const std::string>(text), context, "test");
  if (!module.ok()) return std::string(module.status().message());
  const absl::StatusOr<VerifyResult> result =
      Verify(*std::move(module), ToRunOptions(TextOptions{}), 1, {}, nullptr);
  if (!result.ok()) return std::string(result.status().message());
  for (const OutputDifference& output : result->outputs) {
    if (!output.bitwise) return "the bits of an output differ";
  }
  return result->status == VerifyResult::Status::kOk ? "" : result->reason;
}

TEST(GreedyReshard, GivesTheValuesOfOneDevice) {
  std::mt19937 random(1);
  for (int k = 0; k < 150; ++k) {
    const int axes = 2 + static_cast<int>(random() % 3), rank = 1 + static_cast<int>(random() % 4);
    std::vector<int> dims(rank);
    for (int& d : dims) d = std::vector<int>{16, 16, 8, 5, 6, 10, 3, 1}[random() % 8];
    const std::string type = absl::StrCat("s32[", absl::StrJoin(dims, ","), "]");
    const std::string text =
        absl::StrCat("HloModule m, num_partitions=", 1 << axes, "\nENTRY main {\n  x = ", type,
                     " parameter(0), sharding=", RandomSharding(random, axes, rank, false),
                     "\n  ROOT y = ", type,
                     " negate(x), sharding=", RandomSharding(random, axes, rank, false), "\n}\n");
    EXPECT_EQ(WhyWrong(text, 0), "") << text;
  }
}

// Both operands are sharded over the dimension that is summed, so that the product is partial.
TEST(GreedyReshard, OfPartialSumsGivesTheValuesOfOneDevice) {
  std::mt19937 random(2);
  for (int k = 0; k < 100; ++k) {
    const int axes = 2 + static_cast<int>(random() % 3);
    const int64_t m = std::vector<int>{16, 10, 7}[random() % 3], n = 8 + random() % 3;
    const std::string text = absl::StrCat(
        "HloModule m, num_partitions=", 1 << axes, "\nENTRY main {\n  x = s32[", m,
        ",16] parameter(0), sharding=", RandomSharding(random, axes, 2, false), "\n  y = s32[16,",
        n, "] parameter(1), sharding=", RandomSharding(random, axes, 2, false), "\n  ROOT z = s32[",
        m, ",", n, "] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}, sharding=",
        RandomSharding(random, axes, 2, false), "\n}\n");
    EXPECT_EQ(WhyWrong(text, 0), "") << text;
  }
}

TEST(GreedyReshard, OfManyAxesGivesTheValuesOfOneDeviceAndIsTold) {
  std::mt19937 random(5);
  const std::string text = absl::StrCat(
      "HloModule m, num_partitions=256\nENTRY main {\n  x = s32[4,4,4,4,4,4] parameter(0), "
      "sharding=",
      RandomSharding(random, 8, 6, true),
      "\n  ROOT y = s32[4,4,4,4,4,4] negate(x), sharding=", RandomSharding(random, 8, 6, true),
      "\n}\n");
  EXPECT_EQ(WhyWrong(text, 100), "") << text;
  for (const auto& [states, told] : {std::pair<int64_t, bool>{100, true}, {1'000'000, false}}) {
    auto context = std::make_shared<Context>();
    context->Get<internal::ReshardBudget>().states = states;
    absl::StatusOr<Module> module =
        ParseModule(std::make_shared<const std::string>(text), context, "test");
    ASSERT_TRUE(module.ok()) << module.status();
    const auto p = Partition(*std::move(module), ToRunOptions(TextOptions{}).partition);
    ASSERT_TRUE(p.ok()) << p.status();
    const auto greedy = Contains(Field(&ProgramWarning::code, "W208"));
    if (told) {
      EXPECT_THAT(Warnings(**p), greedy);
    } else {
      EXPECT_THAT(Warnings(**p), testing::Not(greedy));
    }
  }
}

}  // namespace
}  // namespace shardcall
