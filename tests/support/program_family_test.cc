// SPDX-License-Identifier: Apache-2.0
// The cases of a family are drawn evenly: of every mesh, size and sharding.
#include "tests/support/program_family.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

namespace shardcall {
namespace {

ProgramFamily MatrixProduct(int max_cases) {
  ProgramFamily family;
  family.text = "x<0:2> y<1:2> r<2:2>";
  family.sizes = {{{'A', 1}}, {{'A', 2}}, {{'A', 3}}, {{'A', 4}}};
  family.max_cases = max_cases;
  return family;
}

TEST(CasesOf, EveryMeshHasItsShare) {
  std::map<size_t, int> by_mesh;
  for (const ProgramCase& c : CasesOf(MatrixProduct(1200))) ++by_mesh[c.mesh];
  EXPECT_EQ(by_mesh, (std::map<size_t, int>{{0, 300}, {1, 300}, {2, 300}, {3, 300}}));
}

TEST(CasesOf, SmallMeshesGiveTheirShareToOthers) {
  ProgramFamily family = MatrixProduct(100);
  family.text = "x<0:1>";
  family.sizes = {{}};
  family.meshes = {{{2}}, {{2, 2, 2}}, {{4, 2}}};
  std::map<size_t, int> by_mesh;
  for (const ProgramCase& c : CasesOf(family)) ++by_mesh[c.mesh];
  EXPECT_EQ(by_mesh[0], 3);  // nothing, replicated, sharded
  EXPECT_EQ(by_mesh[2], 6);
  EXPECT_EQ(by_mesh[1], 17);  // all that there are
}

TEST(CasesOf, EverySlotTakesEveryShardingAboutEquallyOften) {
  const ProgramFamily family = MatrixProduct(1200);
  for (size_t mesh = 0; mesh < family.meshes.size(); ++mesh) {
    std::map<size_t, int> sizes;
    std::vector<std::map<size_t, int>> slots(3);
    for (const ProgramCase& c : CasesOf(family)) {
      if (c.mesh != mesh) continue;
      ++sizes[c.sizes];
      for (size_t k = 0; k < 3; ++k) ++slots[k][c.slots[k]];
    }
    for (const auto& [size, n] : sizes) EXPECT_NEAR(n, 75, 4) << "size " << size;
    const size_t choices = 1 + AllShardings(family.meshes[mesh], 2).size();
    for (size_t k = 0; k < 3; ++k) {
      const double even = 300.0 / static_cast<double>(choices);
      EXPECT_EQ(slots[k].size(), choices) << "mesh " << mesh << " slot " << k;
      for (const auto& [choice, n] : slots[k]) {
        EXPECT_GE(n, even / 2 - 1) << "mesh " << mesh << " slot " << k << " choice " << choice;
        EXPECT_LE(n, even * 2 + 1) << "mesh " << mesh << " slot " << k << " choice " << choice;
      }
    }
  }
}

TEST(CasesOf, NoneComesTwiceAndAllComeWhereThereIsRoom) {
  for (int most : {50, 1200, 1 << 22}) {
    ProgramFamily family = MatrixProduct(most);
    family.text = "x<0:2> y<1:1>";
    std::set<std::vector<size_t>> seen;
    for (const ProgramCase& c : CasesOf(family)) {
      std::vector<size_t> key{c.mesh, c.sizes};
      key.insert(key.end(), c.slots.begin(), c.slots.end());
      EXPECT_TRUE(seen.insert(key).second);
    }
    size_t all = 0;
    for (const TestMesh& mesh : family.meshes) {
      all += 4 * (1 + AllShardings(mesh, 2).size()) * (1 + AllShardings(mesh, 1).size());
    }
    EXPECT_EQ(seen.size(), std::min<size_t>(most, all));
  }
}

}  // namespace
}  // namespace shardcall
