// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/build/unique_names.h"

#include "gtest/gtest.h"
#include "tests/partitioner/ir/text_util.h"

namespace shardcall {
namespace {

constexpr char kProgram[] = R"(HloModule m

ENTRY %add (x: f32[]) -> f32[] {
  %x = f32[] parameter(0)
  %add = f32[] add(%x, %x)
  ROOT %add.1 = f32[] add(%add, %x)
}
)";

TEST(UniqueNames, TheFirstKeepsItsNameAndOthersAreNumbered) {
  Arena arena;
  UniqueNames names(arena, 4);
  EXPECT_EQ(names.Take("add"), "add");
  EXPECT_EQ(names.Take("add"), "add.1");
  EXPECT_EQ(names.Take("add.1"), "add.2");
  EXPECT_EQ(names.Take("add.7"), "add.7");
  EXPECT_EQ(names.Take("layer.3.mlp"), "layer.3.mlp");
  EXPECT_EQ(names.Take("layer.3.mlp"), "layer.3.mlp.1");
}

TEST(UniqueNames, AReservedNameIsGivenToNobody) {
  Arena arena;
  UniqueNames names(arena, 4);
  names.Reserve("add");
  names.Reserve("add.1");
  EXPECT_EQ(names.Take("add"), "add.2");
}

TEST(UniqueNames, ANameOfTheModuleGoesToItsOwnerAndIsMadeUpForNobody) {
  const auto m = Parse(kProgram);
  ASSERT_TRUE(m.ok()) << m.status();
  UniqueNames names(*m, UniqueNames::kInstructions);
  EXPECT_EQ(names.Take("add"), "add");
  EXPECT_EQ(names.Take("add"), "add.2");
  EXPECT_EQ(names.Take("add.1"), "add.1");
}

TEST(UniqueNames, AddedComputationsHaveNamesOfTheirOwn) {
  auto m = Parse(kProgram);
  ASSERT_TRUE(m.ok()) << m.status();
  EXPECT_EQ(m->comp(AddNamedComputation("sum", &*m)).name, "sum");
  EXPECT_EQ(m->comp(AddNamedComputation("add", &*m)).name, "add.1");
  EXPECT_EQ(m->comp(AddNamedComputation("add", &*m)).name, "add.2");
}

}  // namespace
}  // namespace shardcall
