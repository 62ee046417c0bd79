// SPDX-License-Identifier: Apache-2.0
// Annotations of all three writers as constraints, meshes, parameters, results.
#include "shardcall/sharding/base/status.h"
#include "tests/partitioner/import/import_testing.h"

namespace shardcall {
namespace {

constexpr char kMesh[] =
    "num_partitions=8, frontend_attributes={xla.sdy.meshes={mesh = "
    "#sdy.mesh<[\"data\"=4, \"model\"=2]>}}";

std::string Sdy(const std::string& sharding) {
  return absl::StrCat("frontend_attributes={xla.sdy.sharding=\"", sharding, "\"}");
}

TEST(ImportShardy, TheAttributeIsTheTruthAndShardingItsShadow) {
  const Program p =
      Import(EntryModule("  x = f32[16,8]{1,0} parameter(0), sharding={replicated}, " +
                             Sdy("#sdy.sharding<@mesh, [{\\\"data\\\", ?}, {?}]>") +
                             "\n  y = f32[16,8]{1,0} negate(x), sharding={devices=[8,1]<=[8]}\n"
                             "  ROOT z = f32[16,8]{1,0} exponential(y)\n",
                         kMesh));
  EXPECT_TRUE(p.uses_shardy);
  EXPECT_EQ(ConstraintText(p, "x"), "[4@2?, ?]");
  EXPECT_EQ(ConstraintText(p, "y"), "none");
}

TEST(ImportShardy, ProducersWinOverTheCopiesOnTheirElements) {
  const std::string sharding =
      Sdy("#sdy.sharding_per_value<[<@mesh, [{\\\"data\\\"}]>, <@mesh, [{\\\"model\\\"}]>]>");
  const Program p = Import(
      EntryModule("  x = f32[16]{0} parameter(0)\n"
                  "  t = (f32[16]{0}, f32[16]{0}) custom-call(x), custom_call_target=\"f\", " +
                      sharding + "\n  b = f32[16]{0} get-tuple-element(t), index=1, " + sharding +
                      "\n  ROOT r = f32[16]{0} negate(b)\n",
                  kMesh));
  EXPECT_EQ(ConstraintText(p, "t", 0), "[4@2]");
  EXPECT_EQ(ConstraintText(p, "t", 1), "[2@1]");
  EXPECT_EQ(ConstraintText(p, "b"), "none");
}

TEST(ImportShardy, ResultsGivenByFuncResultShardingNeedNoMore) {
  const Program p = Import(EntryModule(
      "  x = f32[16]{0} parameter(0)\n"
      "  r = f32[16]{0} custom-call(x), custom_call_target=\"xla.sdy.FuncResultSharding\", "
      "custom_call_has_side_effect=true, " +
          Sdy("#sdy.sharding_per_value<[<@mesh, [{\\\"data\\\"}]>]>") +
          "\n  dead = f32[16]{0} reshape(r), sharding={replicated}\n"
          "  t = (f32[16]{0}) tuple(r)\n"
          "  ROOT o = f32[16]{0} get-tuple-element(t), index=0, sharding={replicated}\n",
      kMesh));
  EXPECT_EQ(ResultText(p, 0), "[4@2]");
  EXPECT_EQ(p.module.num_instructions(), 4);  // the dead trace is gone
  EXPECT_EQ(p.annotation[FindInstr(p, "r").value], AnnotationKind::kIdentity);
}

TEST(ImportShardy, UnreducedReplicatedPriorityAndSubAxes) {
  const Program p = Import(EntryModule(
      "  x = f32[16,8]{1,0} parameter(0), " +
          Sdy("#sdy.sharding<@mesh, [{\\\"data\\\":(1)2}p3, {}], unreduced={\\\"model\\\"}>") +
          "\n  ROOT y = f32[16,8]{1,0} negate(x)\n",
      kMesh));
  EXPECT_EQ(ConstraintText(p, "x"), "[2@4, ] unreduced 2@1");
  EXPECT_EQ(p.constraints[p.leaves.leaf(FindInstr(p, "x")).value]->dims[0].priority, 3);
}

TEST(ImportShardy, GroupsJoinTheirOperands) {
  const Program p = Import(EntryModule(
      "  x = f32[16]{0} parameter(0), " + Sdy("#sdy.sharding<@mesh, [{\\\"data\\\"}]>") +
          "\n  g = () custom-call(x), custom_call_target=\"xla.sdy.ShardingGroup\", "
          "custom_call_has_side_effect=true, frontend_attributes={xla.sdy.sharding_group_id=\"5 : "
          "i64\"}\n"
          "  y = f32[16]{0} negate(x)\n"
          "  h = () custom-call(y), custom_call_target=\"xla.sdy.ShardingGroup\", "
          "custom_call_has_side_effect=true, frontend_attributes={xla.sdy.sharding_group_id=\"5 : "
          "i64\"}\n  ROOT z = f32[16]{0} negate(y)\n",
      kMesh));
  EXPECT_EQ(ConstraintText(p, "x"), "[4@2] as 5");
  EXPECT_EQ(ConstraintText(p, "y"), "[?] unknown as 5");
  EXPECT_EQ(p.annotation[FindInstr(p, "g").value], AnnotationKind::kGroup);
}

TEST(ImportShardy, GroupsWithAValueInCommonAreOne) {
  const auto in_group = [](absl::string_view value, int group) {
    return absl::StrCat("\n  ", value, group, " = () custom-call(", value,
                        "), custom_call_target=\"xla.sdy.ShardingGroup\", "
                        "custom_call_has_side_effect=true, "
                        "frontend_attributes={xla.sdy.sharding_group_id=\"",
                        group, " : i64\"}");
  };
  std::string body;
  int number = 0;
  for (const char* value : {"x", "y", "z", "u", "v"}) {
    absl::StrAppend(&body, "\n  ", value, " = f32[16]{0} parameter(", number++, ")");
  }
  // x 7 y 3 z 5 u, and v alone.
  absl::StrAppend(&body, in_group("x", 7), in_group("y", 7), in_group("z", 5), in_group("u", 5),
                  in_group("y", 3), in_group("z", 3), in_group("v", 4));
  const Program p =
      Import(EntryModule(absl::StrCat(body, "\n  ROOT r = f32[16]{0} negate(x)\n"), kMesh));
  for (const char* value : {"x", "y", "z", "u"}) {
    EXPECT_EQ(p.constraints[p.leaves.leaf(FindInstr(p, value)).value]->shard_as, 3) << value;
  }
  EXPECT_EQ(p.constraints[p.leaves.leaf(FindInstr(p, "v")).value]->shard_as, 4);
}

TEST(ImportShardy, AttributesWithoutTheirMeshFallBackToSharding) {
  const Program p = Import(EntryModule(
      "  x = f32[16]{0} parameter(0), sharding={devices=[8]<=[8]}, " +
      Sdy("#sdy.sharding<@mesh, [{\\\"data\\\"}]>") + "\n  ROOT z = f32[16]{0} negate(x)\n"));
  EXPECT_FALSE(p.uses_shardy);
  EXPECT_EQ(ConstraintText(p, "x"), "[8@1]");
}

TEST(ImportGspmd, DimensionsAreClosedUnlessUnspecified) {
  const Program p = Import(EntryModule(R"(
  x = f32[16,8,4]{2,1,0} parameter(0), sharding={devices=[4,1,1,2]<=[8] last_tile_dim_replicate}
  y = f32[16,8,4]{2,1,0} custom-call(x), custom_call_target="Sharding", sharding={devices=[1,1,2,4]<=[4,2]T(1,0) last_tile_dim_replicate}, backend_config="unspecified_dims=[0,1]"
  u = f32[16,8,4]{2,1,0} custom-call(y), custom_call_target="Sharding", custom_call_has_side_effect=true, sharding={unknown shard_as 3}
  m = f32[16,8,4]{2,1,0} custom-call(u), custom_call_target="f", sharding={maximal device=5}
  ROOT z = f32[16,8,4]{2,1,0} negate(m), sharding={replicated}
)",
                                       "num_partitions=8"));
  EXPECT_FALSE(p.uses_shardy);
  EXPECT_EQ(ConstraintText(p, "x"), "[4@2, , ]");
  EXPECT_EQ(ConstraintText(p, "y"), "[?, ?, 2@1]");
  EXPECT_EQ(ConstraintText(p, "u"), "[?, ?, ?] unknown as 3");
  EXPECT_EQ(ConstraintText(p, "m"), "device 5");
  EXPECT_EQ(ConstraintText(p, "z"), "[, , ]");
}

TEST(ImportGspmd, TupleShardingsAreListsAndOneEntryIsSpread) {
  const Program p =
      Import(EntryModule(R"(
  x = (f32[16]{0}, (f32[8]{0}, token[])) parameter(0), sharding={{devices=[8]<=[8]}, {replicated}, {replicated}}
  y = (f32[16]{0}, f32[8]{0}) custom-call(x), custom_call_target="f", sharding={replicated}
  n = () custom-call(x), custom_call_target="g", custom_call_has_side_effect=true, sharding={{maximal device=0}}
  ROOT z = (f32[16]{0}, f32[8]{0}) opt-barrier(y)
)",
                         "num_partitions=8, allow_spmd_sharding_propagation_to_output={true}"));
  EXPECT_EQ(ConstraintText(p, "x", 0), "[8@1]");
  EXPECT_EQ(ConstraintText(p, "x", 1), "[]");
  EXPECT_EQ(ConstraintText(p, "x", 2), "none");  // a token
  EXPECT_EQ(ConstraintText(p, "y", 1), "[]");
}

TEST(ImportNamed, OpenDimensionsAndMeshNamesAreRead) {
  const Program p = Import(EntryModule(R"(
  x = f32[16,8]{1,0} parameter(0), sharding={mesh['data'=4,'model'=2], [{'data'}, {?}]}
  ROOT z = f32[16,8]{1,0} negate(x), sharding={mesh['data'=4,'model'=2], [{}, {}], unreduced={'model'}}
)"));
  EXPECT_EQ(p.num_partitions, 8);
  EXPECT_EQ(ConstraintText(p, "x"), "[4@2, ?]");
  EXPECT_EQ(ConstraintText(p, "z"), "[, ] unreduced 2@1");
  EXPECT_EQ(p.mesh->AxisName(p.mesh->FullAxis(1)), "\"model\"");
}

TEST(ImportMeshes, TilingsMeetOnTheirRefinementAndContradictingOnesStandApart) {
  const Program p = Import(EntryModule(R"(
  x = f32[16,8]{1,0} parameter(0), sharding={devices=[2,4]<=[8]}
  y = f32[16,8]{1,0} negate(x), sharding={devices=[4,2]<=[8]}
  ROOT z = f32[16,8]{1,0} negate(y), sharding={devices=[4,2]3,1,2,0,7,6,4,5}
)"));
  EXPECT_EQ(p.num_partitions, 8);
  EXPECT_EQ(p.mesh->num_axes(), 3);
  ASSERT_EQ(p.meshes.size(), 2);
  EXPECT_TRUE(p.mesh->order().is_identity());
  EXPECT_FALSE(p.constraints[p.leaves.leaf(FindInstr(p, "z")).value]->mesh->order().is_iota());
}

TEST(ImportMeshes, ModulesWithoutAnyHaveOneAxisOverAllPartitions) {
  const std::string body = "  x = f32[16]{0} parameter(0)\n  ROOT z = f32[16]{0} negate(x)\n";
  const Program p = Import(EntryModule(body, "num_partitions=6"));
  EXPECT_EQ(p.mesh->num_axes(), 1);
  EXPECT_EQ(p.mesh->AxisName(p.mesh->FullAxis(0)), "\"x0\"");
  EXPECT_EQ(Import(EntryModule(body), {.num_partitions = 4}).num_partitions, 4);
  EXPECT_EQ(Import(EntryModule(body)).mesh->num_axes(), 0);
}

TEST(ImportMeshes, DeviceCountsThatDifferAreRefused) {
  const std::string body =
      "  x = f32[16]{0} parameter(0), sharding={devices=[8]<=[8]}\n"
      "  ROOT z = f32[16]{0} negate(x)\n";
  absl::Status s = TryImport(EntryModule(body, "num_partitions=4")).status();
  EXPECT_EQ(DiagnosticCode(s), "E051") << s;
  EXPECT_NE(s.message().find("expected 4, found 8"), absl::string_view::npos) << s;
  EXPECT_EQ(DiagnosticCode(TryImport(EntryModule(body), {.num_partitions = 2}).status()), "E051");
  EXPECT_EQ(DiagnosticCode(
                TryImport(EntryModule(body, "num_partitions=8"), {.num_partitions = 2}).status()),
            "E051");
  EXPECT_EQ(
      DiagnosticCode(
          TryImport(EntryModule("  ROOT z = f32[] parameter(0)\n", "replica_count=2")).status()),
      "E050");
}

TEST(ImportSignature, WhatIsUnannotatedAndMayNotBeSetIsReplicated) {
  const std::string body = R"(
  x = f32[16]{0} parameter(0)
  y = (f32[16]{0}, f32[16]{0}) parameter(1)
  a = f32[16]{0} get-tuple-element(y), index=1
  z = f32[16]{0} add(x, a)
  ROOT t = (f32[16]{0}, f32[16]{0}) tuple(z, a)
)";
  const Program closed = Import(EntryModule(body, "num_partitions=8"));
  EXPECT_EQ(ConstraintText(closed, "x"), "[]");
  EXPECT_EQ(ConstraintText(closed, "y", 1), "[]");
  EXPECT_EQ(ResultText(closed, 0), "[]");
  const Program open =
      Import(EntryModule(body,
                         "allow_spmd_sharding_propagation_to_parameters={true,false,true}, "
                         "allow_spmd_sharding_propagation_to_output={true}, num_partitions=8"));
  EXPECT_EQ(ConstraintText(open, "x"), "none");
  EXPECT_EQ(ConstraintText(open, "y", 0), "[]");
  EXPECT_EQ(ConstraintText(open, "y", 1), "none");
  EXPECT_EQ(ResultText(open, 0), "none");
  EXPECT_EQ(open.may_set_output, std::vector<bool>({true, true}));
}

TEST(ImportSignature, ResultsUnlikeTheirValueGetAnIdentityOfTheirOwn) {
  const Program p = Import(EntryModule(R"(
  x = f32[16]{0} parameter(0), sharding={devices=[8]<=[8]}
  y = f32[16]{0} negate(x)
  ROOT t = (f32[16]{0}, f32[16]{0}) tuple(x, y), sharding={{replicated}, {devices=[8]<=[8]}}
)",
                                       "num_partitions=8"));
  EXPECT_EQ(ConstraintText(p, "x"), "[8@1]");
  const InstrId root = p.module.comp(p.module.entry()).root;
  const InstrId first = p.module.operand(root, 0);
  EXPECT_EQ(p.annotation[first.value], AnnotationKind::kIdentity);
  EXPECT_EQ(ConstraintText(p.constraints[p.leaves.leaf(first).value]), "[]");
  EXPECT_EQ(ResultText(p, 0), "[]");
  // Also where nothing else is said of the value.
  EXPECT_EQ(ConstraintText(p, "y"), "none");
  EXPECT_EQ(p.annotation[p.module.operand(root, 1).value], AnnotationKind::kIdentity);
  EXPECT_EQ(ResultText(p, 1), "[8@1]");
}

TEST(ImportSignature, AnAnnotatedElementOfATupleAsTheResultDoesNotBindTheTuple) {
  const Program p = Import(EntryModule(R"(
  x = f32[16]{0} parameter(0)
  t = (f32[16]{0}) tuple(x)
  ROOT e = f32[16]{0} get-tuple-element(t), index=0, sharding={devices=[8]<=[8]}
)",
                                       "num_partitions=8"));
  const InstrId root = p.module.comp(p.module.entry()).root;
  EXPECT_EQ(p.annotation[root.value], AnnotationKind::kIdentity);
  EXPECT_EQ(ConstraintText(p, "e"), "none");
  EXPECT_EQ(ResultText(p, 0), "[8@1]");
}

TEST(ImportSignature, WhereAResultMayBeSetItsAnnotationIsTheLeast) {
  const Program p = Import(EntryModule(R"(
  x = f32[16]{0} parameter(0)
  y = f32[16]{0} negate(x)
  z = f32[16]{0} negate(y)
  ROOT t = (f32[16]{0}, f32[16]{0}, f32[16]{0}) tuple(y, z, z), sharding={{replicated}, {devices=[8]<=[8]}, {devices=[8]<=[8]}}
)",
                                       "num_partitions=8, "
                                       "allow_spmd_sharding_propagation_to_output={true}"));
  EXPECT_EQ(p.module.operand(p.module.comp(p.module.entry()).root, 1), FindInstr(p, "z"));
  EXPECT_EQ(ResultText(p, 0), "none");
  EXPECT_EQ(ResultText(p, 1), "[8@1?]");
}

TEST(ImportSignature, RootsThatAreNoTupleInstructionAreTakenApart) {
  const Program p = Import(EntryModule(R"(
  x = (f32[16]{0}, f32[16]{0}) parameter(0), sharding={{devices=[8]<=[8]}, {replicated}}
  ROOT t = (f32[16]{0}, f32[16]{0}) opt-barrier(x), sharding={{replicated}, {replicated}}
)",
                                       "num_partitions=8"));
  const InstrId root = p.module.comp(p.module.entry()).root;
  EXPECT_EQ(p.module.instr(root).opcode, Opcode::kTuple);
  EXPECT_EQ(ResultText(p, 0), "[]");
  EXPECT_EQ(ConstraintText(p, "x", 0), "[8@1]");
}

TEST(ImportSignature, ResultsInNestedTuplesHaveTheirOwnSharding) {
  const Program p = Import(EntryModule(R"(
  x = f32[16]{0} parameter(0), sharding={devices=[8]<=[8]}
  n = (f32[16]{0}) tuple(x)
  ROOT t = ((f32[16]{0}), f32[16]{0}) tuple(n, x), sharding={{replicated}, {devices=[8]<=[8]}}
)",
                                       "num_partitions=8"));
  EXPECT_THAT(p.warnings, testing::IsEmpty());
  EXPECT_EQ(ResultText(p, 0), "[]");
  EXPECT_EQ(ResultText(p, 1), "[8@1]");
}

std::string Groups(const std::string& first, const std::string& second,
                   const std::string& shape = "f32[16,32]") {
  const Program p = Import(EntryModule(
      absl::StrCat("  x = f32[16,32] parameter(0)\n",
                   "  a = f32[16,32] custom-call(x), custom_call_target=\"Sharding\", sharding=",
                   first, "\n  y = ", shape, " parameter(1)\n  c = ", shape,
                   " custom-call(y), custom_call_target=\"Sharding\", sharding=", second,
                   "\n  ROOT t = (f32[16,32], ", shape, ") tuple(a, c)\n"),
      "num_partitions=8, allow_spmd_sharding_propagation_to_output={true}"));
  return absl::StrJoin(p.warnings, "; ");
}

TEST(ImportGroups, ThatContradictAreToldWithBothValues) {
  constexpr char kRows[] = "{devices=[8,1]<=[8] shard_as 1}";
  constexpr char kUnknown[] = "{unknown shard_as 1}";
  EXPECT_EQ(Groups(kRows, kRows), "");
  EXPECT_EQ(Groups(kRows, kUnknown), "");
  EXPECT_EQ(Groups(kRows, "{devices=[1,8]<=[8] shard_as 2}"), "");
  EXPECT_EQ(Groups(kRows, "{devices=[1,8]<=[8] shard_as 1}"),
            "W211 the values %a and %c of sharding group 1 are annotated [{\"x0\"}, {}] and "
            "annotated [{}, {\"x0\"}], so that they are not sharded alike");
  EXPECT_EQ(Groups(kUnknown, kUnknown, "f32[16,8]"),
            "W211 the values %a and %c of sharding group 1 are f32[16,32] and f32[16,8], so that "
            "they are not sharded alike");
}

TEST(ImportErrors, NameTheInstructionAndTheFault) {
  const auto code = [](const std::string& body, const std::string& header = "num_partitions=8") {
    absl::Status s = TryImport(EntryModule(body, header)).status();
    EXPECT_NE(s.message().find("x"), absl::string_view::npos) << s;
    return std::string(DiagnosticCode(s));
  };
  const std::string tail = "\n  ROOT z = f32[16]{0} negate(x)\n";
  EXPECT_EQ(code("  x = f32[16]{0} parameter(0), sharding={devices=[2,4]<=[8]}" + tail), "E163");
  EXPECT_EQ(
      code("  x = f32[16]{0} parameter(0), " + Sdy("#sdy.sharding<@mesh, [{}, {}]>") + tail, kMesh),
      "E163");
  EXPECT_EQ(
      code("  x = f32[16]{0} parameter(0), " + Sdy("#sdy.sharding<@mesh, [{\\\"nope\\\"}]>") + tail,
           kMesh),
      "E162");
  EXPECT_EQ(
      code("  x = f32[16]{0} parameter(0), " + Sdy("#sdy.sharding<@gone, [{}]>") + tail, kMesh),
      "E163");
  EXPECT_EQ(code("  x = f32[16]{0} parameter(0), " + Sdy("#sdy.sharding<@mesh, [{") + tail, kMesh),
            "E161");
  EXPECT_EQ(code("  x = f32[16]{0} parameter(0), sharding={{replicated}, {replicated}}" + tail),
            "E165");
  // A type without a zero has no sum, and complex numbers have no maximum.
  EXPECT_EQ(code("  x = f8e8m0fnu[16]{0} parameter(0), sharding={unreduced}\n"
                 "  ROOT z = f8e8m0fnu[16]{0} negate(x)\n"),
            "E165");
  EXPECT_EQ(code("  x = c64[16]{0} parameter(0), sharding={mesh['a'=8], [{}], unreduced=max{'a'}}\n"
                 "  ROOT z = c64[16]{0} negate(x)\n"),
            "E165");
}

}  // namespace
}  // namespace shardcall
