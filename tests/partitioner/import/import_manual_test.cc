// SPDX-License-Identifier: Apache-2.0
// Manual regions of both forms: boundaries, where they reach, and bad ones.
#include "shardcall/sharding/base/status.h"
#include "tests/partitioner/import/import_testing.h"

namespace shardcall {
namespace {

constexpr char kShardyHeader[] =
    "num_partitions=8, frontend_attributes={xla.sdy.meshes={mesh = "
    "#sdy.mesh<[\"data\"=4, \"model\"=2]>}}";

std::string Boundary(const std::string& name, const std::string& shape, const std::string& operands,
                     bool entry, const std::string& axes, const std::string& shardings) {
  return absl::StrCat("  ", name, " = ", shape, " custom-call(", operands,
                      "), custom_call_target=\"xla.sdy.",
                      entry ? "GlobalToLocalShape" : "LocalToGlobalShape",
                      "\", custom_call_has_side_effect=true, frontend_attributes={xla.sdy.",
                      entry ? "in" : "out", "_shardings=\"#sdy.sharding_per_value<[", shardings,
                      "]>\",xla.sdy.manual_axes=\"#sdy<manual_axes{", axes, "}>\"}\n");
}
constexpr char kData[] = "\\\"data\\\"";
constexpr char kModel[] = "\\\"model\\\"";
std::string On(const std::string& dims) { return absl::StrCat("<@mesh, [", dims, "]>"); }

std::string Code(const std::string& text) {
  return std::string(DiagnosticCode(TryImport(text).status()));
}

TEST(ImportManual, PartlyManualDimensionsKeepTheirFreeAxesInside) {
  const Program p =
      Import(EntryModule("  x = f32[16,8]{1,0} parameter(0)\n" +
                             Boundary("in", "f32[4,8]{1,0}", "x", true, kData,
                                      On(absl::StrCat("{", kData, ", ", kModel, "}, {?}"))) +
                             "  y = f32[4,8]{1,0} negate(in)\n" +
                             Boundary("out", "f32[16,8]{1,0}", "y", false, kData,
                                      On(absl::StrCat("{", kData, ", ?}, {", kModel, "}"))) +
                             "  ROOT z = f32[16,8]{1,0} negate(out)\n",
                         kShardyHeader));
  EXPECT_EQ(BoundaryTexts(p),
            std::vector<std::string>({"enter 4@2 in 4@2:f32[16,8] -> (4@2) () [2@1, ?] manual 4@2",
                                      "leave 4@2 in :f32[4,8] -> (4@2) () [4@2?, 2@1]"}));
  EXPECT_EQ(RegionText(p, "y"), "4@2");
  EXPECT_EQ(RegionText(p, "x"), "");
  EXPECT_EQ(RegionText(p, "z"), "");
}

// Outside, the value would be a sum over "data".
TEST(ImportManual, AnUnreducedResultOfATypeWithoutSumsIsRefused) {
  const auto leaves = [](const std::string& type) {
    const std::string local = absl::StrCat(type, "[16]{0}");
    return EntryModule(
        absl::StrCat("  x = ", local, " parameter(0)\n",
                     Boundary("in", local, "x", true, kData, On("{}")), "  y = ", local,
                     " copy(in)\n",
                     Boundary("out", local, "y", false, kData,
                              absl::StrCat("<@mesh, [{}], unreduced={", kData, "}>")),
                     "  ROOT z = ", local, " copy(out)\n"),
        kShardyHeader);
  };
  EXPECT_EQ(Code(leaves("f32")), "");
  EXPECT_EQ(Code(leaves("f8e8m0fnu")), "E165");
}

TEST(ImportManual, SeveralOperandsAndTokensStandTogetherInOneBoundary) {
  const Program p = Import(EntryModule(
      "  x = f32[16]{0} parameter(0)\n  k = token[] after-all()\n" +
          Boundary("in", "(f32[4]{0}, token[])", "x, k", true, kData,
                   On(absl::StrCat("{", kData, "}")) + ", " + On("")) +
          "  a = f32[4]{0} get-tuple-element(in), index=0\n" +
          Boundary("out", "f32[16]{0}", "a", false, kData, On(absl::StrCat("{", kData, "}"))) +
          "  ROOT z = f32[16]{0} negate(out)\n",
      kShardyHeader));
  const ManualBoundary& b = p.boundaries.at(FindInstr(p, "in"));
  ASSERT_EQ(b.manual_dims.size(), 2);
  EXPECT_EQ(b.manual_dims[0].size(), 1);
  EXPECT_TRUE(b.manual_dims[1].empty());
}

TEST(ImportManual, RegionsNestAndNameOnlyTheirOwnAxes) {
  const Program p = Import(EntryModule("  x = f32[16,8]{1,0} parameter(0)\n" +
                                           Boundary("in", "f32[16,4]{1,0}", "x", true, kModel,
                                                    On(absl::StrCat("{?}, {", kModel, ", ?}"))) +
                                           Boundary("in2", "f32[4,4]{1,0}", "in", true, kData,
                                                    On(absl::StrCat("{", kData, ", ?}, {?}"))) +
                                           "  y = f32[4,4]{1,0} negate(in2)\n" +
                                           Boundary("out2", "f32[16,4]{1,0}", "y", false, kData,
                                                    On(absl::StrCat("{", kData, ", ?}, {?}"))) +
                                           "  w = f32[16,4]{1,0} negate(out2)\n" +
                                           Boundary("out", "f32[16,8]{1,0}", "w", false, kModel,
                                                    On(absl::StrCat("{?}, {", kModel, ", ?}"))) +
                                           "  ROOT z = f32[16,8]{1,0} negate(out)\n",
                                       kShardyHeader));
  EXPECT_EQ(RegionText(p, "y"), "8@1");
  EXPECT_EQ(RegionText(p, "w"), "2@1");
  EXPECT_EQ(p.regions.size(), 3);
}

TEST(ImportManual, RegionsWithoutOperandsAreFoundFromTheirResults) {
  const Program p = Import(EntryModule(
      "  i = u32[] partition-id()\n  two = u32[] constant(2)\n  d = u32[] divide(i, two)\n"
      "  r = u32[1]{0} reshape(d)\n" +
          Boundary("out", "u32[4]{0}", "r", false, kData, On(absl::StrCat("{", kData, "}"))) +
          "  ROOT z = u32[4]{0} not(out)\n",
      kShardyHeader));
  EXPECT_EQ(RegionText(p, "i"), "4@2");
  EXPECT_EQ(RegionText(p, "two"), "4@2");
  EXPECT_EQ(RegionText(p, "out"), "");
}

TEST(ImportManual, ConstantsSharedBetweenRegionsAreCopied) {
  const Program p = Import(EntryModule(
      "  x = f32[16]{0} parameter(0)\n  c = f32[] constant(2)\n"
      "  b = f32[4]{0} broadcast(c), dimensions={}\n  e = f32[16]{0} broadcast(c), dimensions={}\n"
      "  h = f32[16]{0} multiply(x, e)\n" +
          Boundary("in", "f32[4]{0}", "h", true, kData, On(absl::StrCat("{", kData, "}"))) +
          "  y = f32[4]{0} multiply(in, b)\n" +
          Boundary("out", "f32[16]{0}", "y", false, kData, On(absl::StrCat("{", kData, "}"))) +
          "  ROOT z = f32[16]{0} negate(out)\n",
      kShardyHeader));
  const InstrId inside = p.module.operand(FindInstr(p, "b"), 0);
  const InstrId outside = p.module.operand(FindInstr(p, "e"), 0);
  EXPECT_NE(inside, outside);
  EXPECT_EQ(Placement(*p.mesh, p.manual_axes(inside)), "4@2");
  EXPECT_EQ(Placement(*p.mesh, p.manual_axes(outside)), "");
  EXPECT_EQ(RegionText(p, "b"), "4@2");
}

TEST(ImportManual, LoopsInRegionsTakeTheirBodiesAlong) {
  const std::string body = R"(
body {
  t = (s32[], f32[4]{0}) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  v = f32[4]{0} get-tuple-element(t), index=1
  one = s32[] constant(1)
  n = s32[] add(i, one)
  said = () custom-call(n), custom_call_target="log", custom_call_has_side_effect=true
  ROOT r = (s32[], f32[4]{0}) tuple(n, v)
}
cond {
  u = (s32[], f32[4]{0}) parameter(0)
  j = s32[] get-tuple-element(u), index=0
  ten = s32[] constant(10)
  ROOT lt = pred[] compare(j, ten), direction=LT
}
)";
  const Program p = Import(absl::StrCat(
      "HloModule test, ", kShardyHeader, "\n", body, "ENTRY main {\n",
      "  x = f32[16]{0} parameter(0)\n",
      Boundary("in", "f32[4]{0}", "x", true, kData, On(absl::StrCat("{", kData, "}"))),
      "  zero = s32[] constant(0)\n  q = (s32[], f32[4]{0}) tuple(zero, in)\n",
      "  w = (s32[], f32[4]{0}) while(q), condition=cond, body=body\n",
      "  a = f32[4]{0} get-tuple-element(w), index=1\n",
      Boundary("out", "f32[16]{0}", "a", false, kData, On(absl::StrCat("{", kData, "}"))),
      "  ROOT z = f32[16]{0} negate(out)\n}\n"));
  for (const char* name : {"zero", "w", "t", "one", "n", "said", "j", "ten", "lt"}) {
    EXPECT_EQ(RegionText(p, name), "4@2") << name;
  }
}

TEST(ImportManual, BodiesCalledTwiceBecomeTwoCopiesEachInItsRegion) {
  const auto call = [](const std::string& n, const std::string& operand) {
    return Boundary("in" + n, "f32[4]{0}", operand, true, kData,
                    On(absl::StrCat("{", kData, "}"))) +
           "  c" + n + " = f32[4]{0} call(in" + n +
           "), to_apply=body, frontend_attributes={inlineable=\"false\"}\n" +
           Boundary("out" + n, "f32[16]{0}", "c" + n, false, kData,
                    On(absl::StrCat("{", kData, "}")));
  };
  const Program p = Import(absl::StrCat(
      "HloModule test, ", kShardyHeader, "\nbody {\n  a = f32[4]{0} parameter(0)\n",
      "  said = () custom-call(), custom_call_target=\"log\", custom_call_has_side_effect=true\n",
      "  ROOT n = f32[4]{0} negate(a)\n}\nENTRY main {\n  x = f32[16]{0} parameter(0)\n",
      call("1", "x"), call("2", "out1"), "  ROOT z = f32[16]{0} negate(out2)\n}\n"));
  for (const char* name : {"n", "n.1", "said", "said.1"}) {
    EXPECT_EQ(RegionText(p, name), "4@2") << name;
  }
}

TEST(ImportManual, GspmdPairsSayTheSameAsShardyBoundaries) {
  const Program g = Import(EntryModule(R"(
  x = f32[16,8]{1,0} parameter(0), sharding={devices=[4,2]<=[8]}
  s = f32[16,8]{1,0} custom-call(x), custom_call_target="Sharding", sharding={devices=[1,2,4]<=[4,2]T(1,0) last_tile_dim_replicate}, backend_config="unspecified_dims=[0,1]"
  in = f32[16,4]{1,0} custom-call(s), custom_call_target="SPMDFullToShardShape", sharding={devices=[1,1,2,4]<=[4,2]T(1,0) last_tile_dims={manual, replicated}}, backend_config="unspecified_dims=[0,1]"
  y = f32[16,4]{1,0} negate(in)
  t = f32[16,4]{1,0} custom-call(y), custom_call_target="Sharding", sharding={devices=[1,1,2,4]<=[4,2]T(1,0) last_tile_dims={manual, replicated}}, backend_config="unspecified_dims=[0,1]"
  out = f32[16,8]{1,0} custom-call(t), custom_call_target="SPMDShardToFullShape", sharding={devices=[1,2,4]<=[4,2]T(1,0) last_tile_dim_replicate}, backend_config="unspecified_dims=[0,1]"
  ROOT z = f32[16,8]{1,0} negate(out)
)",
                                       "num_partitions=8"));
  const Program s = Import(EntryModule("  x = f32[16,8]{1,0} parameter(0)\n" +
                                           Boundary("in", "f32[16,4]{1,0}", "x", true, kModel,
                                                    On(absl::StrCat("{?}, {", kModel, ", ?}"))) +
                                           "  y = f32[16,4]{1,0} negate(in)\n" +
                                           Boundary("out", "f32[16,8]{1,0}", "y", false, kModel,
                                                    On(absl::StrCat("{?}, {", kModel, ", ?}"))) +
                                           "  ROOT z = f32[16,8]{1,0} negate(out)\n",
                                       kShardyHeader));
  EXPECT_EQ(BoundaryTexts(g), BoundaryTexts(s));
  EXPECT_EQ(RegionText(g, "y"), "2@1");
  EXPECT_EQ(RegionText(g, "t"), "2@1");
  EXPECT_EQ(RegionText(g, "s"), "");
}

TEST(ImportManual, ShapesThatDoNotFitAreRefusedWithBothShapes) {
  const std::string text = EntryModule(
      "  x = f32[10]{0} parameter(0)\n" +
          Boundary("in", "f32[3]{0}", "x", true, kData, On(absl::StrCat("{", kData, "}"))) +
          Boundary("out", "f32[12]{0}", "in", false, kData, On(absl::StrCat("{", kData, "}"))) +
          "  ROOT z = f32[12]{0} negate(out)\n",
      kShardyHeader);
  const absl::Status s = TryImport(text).status();
  EXPECT_EQ(DiagnosticCode(s), "E171") << s;
  EXPECT_NE(s.message().find("global f32[10], local f32[3]"), absl::string_view::npos) << s;
}

TEST(ImportManual, BadRegionsAreRefused) {
  const std::string in =
      Boundary("in", "f32[4]{0}", "x", true, kData, On(absl::StrCat("{", kData, "}")));
  const std::string out =
      Boundary("out", "f32[16]{0}", "y", false, kData, On(absl::StrCat("{", kData, "}")));
  const auto module = [](const std::string& body) {
    return EntryModule("  x = f32[16]{0} parameter(0)\n" + body, kShardyHeader);
  };
  // An axis that is manual already.
  EXPECT_EQ(
      Code(module(
          in + Boundary("y", "f32[1]{0}", "in", true, kData, On(absl::StrCat("{", kData, "}"))) +
          Boundary("v", "f32[4]{0}", "y", false, kData, On(absl::StrCat("{", kData, "}"))) +
          Boundary("out", "f32[16]{0}", "v", false, kData, On(absl::StrCat("{", kData, "}"))) +
          "  ROOT z = f32[16]{0} negate(out)\n")),
      "E174");
  // A value that leaves, or enters, without a boundary.
  EXPECT_EQ(Code(module(in +
                        "  g = f32[4]{0} slice(x), slice={[0:4]}\n"
                        "  y = f32[4]{0} add(in, g)\n" +
                        out + "  ROOT z = f32[16]{0} negate(out)\n")),
            "E175");
  EXPECT_EQ(Code(module(in + "  ROOT z = f32[4]{0} negate(in)\n")), "E175");
  // Leaving what was not entered.
  EXPECT_EQ(Code(module("  y = f32[4]{0} slice(x), slice={[0:4]}\n" + out +
                        "  ROOT z = f32[16]{0} negate(out)\n")),
            "E175");
  // A sharding over a manual axis inside.
  EXPECT_EQ(Code(module(in +
                        "  y = f32[4]{0} negate(in), frontend_attributes={xla.sdy.sharding="
                        "\"#sdy.sharding_per_value<[<@mesh, [{\\\"data\\\"}]>]>\"}\n" +
                        out + "  ROOT z = f32[16]{0} negate(out)\n")),
            "E172");
  // A free axis before a manual one.
  EXPECT_EQ(
      Code(module(Boundary("in", "f32[4]{0}", "x", true, kData,
                           On(absl::StrCat("{", kModel, ", ", kData, "}"))) +
                  "  y = f32[4]{0} negate(in)\n" + out + "  ROOT z = f32[16]{0} negate(out)\n")),
      "E176");
  // Entries that do not match the operands; unknown axes.
  EXPECT_EQ(Code(module(Boundary("in", "f32[4]{0}", "x", true, kData, "") +
                        "  ROOT z = f32[4]{0} negate(in)\n")),
            "E173");
  EXPECT_EQ(Code(module(Boundary("in", "f32[4]{0}", "x", true, "\\\"nope\\\"", On("{}")) +
                        "  ROOT z = f32[4]{0} negate(in)\n")),
            "E162");
}

}  // namespace
}  // namespace shardcall
