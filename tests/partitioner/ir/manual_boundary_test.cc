// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/analysis/manual_boundary.h"

#include "absl/strings/str_cat.h"
#include "text_util.h"

namespace shardcall {
namespace {

const char kMesh[] = "mesh['a'=4,'b'=2]";

// The boundary %name of a program.
ManualBoundaryText BoundaryOf(const std::string& body, absl::string_view name) {
  const auto module = Parse(InEntry(body));
  EXPECT_TRUE(module.ok()) << module.status();
  if (!module.ok()) return {};
  for (int k = 0; k < module->num_instructions(); ++k) {
    const Instruction& i = module->instr(InstrId(k));
    if (i.name == name) return ManualBoundaryOf(*module, i);
  }
  ADD_FAILURE() << name;
  return {};
}

std::string Entry(const std::string& first, const std::string& second) {
  return absl::StrCat(
      "  %x = f32[16,8] parameter(0)\n"
      "  %g = f32[16,8] custom-call(%x), custom_call_target=\"Sharding\", sharding={",
      kMesh, ", [{'a', ?}, {'b'}]}\n",
      "  ROOT %l = (f32[16,4], f32[16,4]) custom-call(%g, %g), "
      "custom_call_target=\"xla.sdy.GlobalToLocalShape\", sharding={{",
      kMesh, first, "}, {", kMesh, second, "}}\n");
}

TEST(ManualBoundary, AnEntryHasTheShardingsOfItsOperandsAndTheAxesOfItsResults) {
  const std::string open = ", [{?}, {?}], manual={'b'}";
  const ManualBoundaryText text = BoundaryOf(Entry(open, open), "l");
  const std::string one = R"(<mesh<["a"=4, "b"=2]>, [{"a", ?}, {"b"}]>)";
  EXPECT_EQ(text.shardings, absl::StrCat("#sdy.sharding_per_value<[", one, ", ", one, "]>"));
  EXPECT_EQ(text.manual_axes, R"(#sdy<manual_axes{"b"}>)");
  // Over all axes.
  EXPECT_EQ(BoundaryOf(Entry(", manual", ", manual"), "l").manual_axes,
            R"(#sdy<manual_axes{"a", "b"}>)");
}

TEST(ManualBoundary, AnExitHasTheAxesOfTheCallThatItsOperandsComeFrom) {
  const ManualBoundaryText text = BoundaryOf(
      absl::StrCat("  %x = f32[16,4] parameter(0)\n"
                   "  %t = (f32[16,4], f32[16,4]) custom-call(%x), custom_call_target=\"body\", "
                   "sharding={{",
                   kMesh, ", [{?}, {?}], manual={'b'}}, {", kMesh, ", [{?}, {?}], manual={'b'}}}\n",
                   "  ROOT %r = f32[16,8] custom-call(%t#1), "
                   "custom_call_target=\"xla.sdy.LocalToGlobalShape\", sharding={",
                   kMesh, ", [{}, {'b'}]}\n"),
      "r");
  EXPECT_EQ(text.shardings, R"(#sdy.sharding_per_value<[<mesh<["a"=4, "b"=2]>, [{}, {"b"}]>]>)");
  EXPECT_EQ(text.manual_axes, R"(#sdy<manual_axes{"b"}>)");
}

TEST(ManualBoundary, AttributesSayItAsTheyStand) {
  const ManualBoundaryText text = BoundaryOf(
      "  %x = f32[16,8] parameter(0)\n"
      "  ROOT %l = f32[16,4] custom-call(%x), custom_call_target=\"xla.sdy.GlobalToLocalShape\", "
      "frontend_attributes={xla.sdy.in_shardings=\"in\",xla.sdy.manual_axes=\"axes\"}\n",
      "l");
  EXPECT_EQ(text.shardings, "in");
  EXPECT_EQ(text.manual_axes, "axes");
}

TEST(ManualBoundary, WhatIsNotSaidByAllValuesIsNotSaid) {
  const std::string open = ", [{?}, {?}], manual={'b'}";
  for (const char* other :
       {", [{?}, {?}]", ", [{?}, {?}], manual={'a'}", ", [{?}, {?}], manual={'a':(1)2}"}) {
    EXPECT_EQ(BoundaryOf(Entry(open, other), "l").shardings, "") << other;
    EXPECT_EQ(BoundaryOf(Entry(other, other), "l").shardings.empty(),
              std::string(other) != ", [{?}, {?}], manual={'a'}")
        << other;
  }
}

}  // namespace
}  // namespace shardcall
