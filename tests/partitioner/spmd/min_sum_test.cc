// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/spmd/states/min_sum.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "tests/fuzz/generator/random.h"

namespace shardcall {
namespace {

double SumAt(absl::Span<const int> sizes, const std::vector<CostTable>& tables,
             absl::Span<const int> values) {
  double sum = 0;
  for (const CostTable& t : tables) {
    size_t index = 0;
    for (int v : t.variables) index = index * sizes[v] + values[v];
    sum += t.cost[index];
  }
  return sum;
}

double LeastSum(absl::Span<const int> sizes, const std::vector<CostTable>& tables) {
  double least = std::numeric_limits<double>::infinity();
  ForAllValues(
      sizes, [&](absl::Span<const int> at) { least = std::min(least, SumAt(sizes, tables, at)); });
  return least;
}

// Tables of one to three variables; whole numbers, so that sums are exact.
std::vector<CostTable> RandomTables(Random& random, absl::Span<const int> sizes, int count) {
  std::vector<CostTable> tables;
  const int64_t n = static_cast<int64_t>(sizes.size());
  for (int k = 0; k < count; ++k) {
    CostTable& t = tables.emplace_back();
    int64_t entries = 1;
    for (int64_t v : random.Subset(n, random.Int(1, std::min<int64_t>(n, 3)))) {
      t.variables.push_back(static_cast<int>(v));
      entries *= sizes[v];
    }
    while (entries-- > 0) t.cost.push_back(static_cast<double>(random.Int(0, 99)));
  }
  return tables;
}

TEST(MinSum, FindsTheLeastSum) {
  Random random(1);
  for (int k = 0; k < 300; ++k) {
    std::vector<int> sizes(random.Int(1, 7));
    for (int& s : sizes) s = static_cast<int>(random.Int(1, 4));
    const auto tables = RandomTables(random, sizes, static_cast<int>(random.Int(1, 9)));
    const std::vector<int> found = MinimizeSum(sizes, tables, 1 << 20);
    ASSERT_EQ(found.size(), sizes.size());
    for (size_t v = 0; v < sizes.size(); ++v) EXPECT_LT(found[v], sizes[v]);
    EXPECT_EQ(SumAt(sizes, tables, found), LeastSum(sizes, tables)) << k;
  }
}

// What a variable keeps instead is its first value, so that the sum is never above that of all
// first values.
TEST(MinSum, IsNoWorseThanTheFirstValuesWhereTablesMayNotGrow) {
  Random random(2);
  int exact = 0;
  for (int k = 0; k < 100; ++k) {
    const std::vector<int> sizes(8, 3), first(8, 0);
    const auto tables = RandomTables(random, sizes, 16);
    const double found = SumAt(sizes, tables, MinimizeSum(sizes, tables, 9));
    EXPECT_LE(found, SumAt(sizes, tables, first)) << k;
    exact += found == LeastSum(sizes, tables);
  }
  EXPECT_LT(exact, 100);
}

TEST(MinSum, AChainOfManyVariablesTakesSmallTables) {
  const int n = 20000;
  const std::vector<int> sizes(n, 3);
  std::vector<CostTable> tables;
  for (int v = 0; v + 1 < n; ++v) {  // neighbours differ, and the first is 1
    tables.push_back({{v, v + 1}, {5, 1, 0, 1, 5, 1, 0, 1, 5}});
  }
  tables.push_back({{0}, {9, 0, 9}});
  const std::vector<int> found = MinimizeSum(sizes, tables, 9);
  EXPECT_EQ(found[0], 1);
  for (int v = 1; v + 1 < n; ++v) ASSERT_NE(found[v], found[v + 1]) << v;
  EXPECT_EQ(SumAt(sizes, tables, found), 1);  // 1, then 0 and 2 in turns
}

}  // namespace
}  // namespace shardcall
