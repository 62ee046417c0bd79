// SPDX-License-Identifier: Apache-2.0
// The rule of every opcode, as text.
#include "gtest/gtest.h"
#include "shardcall/partitioner/import/import.h"
#include "shardcall/partitioner/rules/op_rules.h"
#include "shardcall/partitioner/rules/rule_builder.h"
#include "tests/partitioner/import/import_testing.h"

namespace shardcall {
namespace {

constexpr char kComputations[] = R"(
sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b)
}

largest {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] maximum(a, b)
}

keep {
  a = f32[] parameter(0)
  ROOT b = f32[] parameter(1)
}

less {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = pred[] compare(a, b), direction=LT
}

pair {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  c = f32[] parameter(2)
  d = f32[] parameter(3)
  m = f32[] maximum(a, c)
  n = f32[] maximum(b, d)
  ROOT r = (f32[], f32[]) tuple(m, n)
}

)";

// Instructions of an entry computation; the one called `op` is the root.
Program Parse(const std::string& body) {
  absl::StatusOr<Module> module =
      ParseModule(std::make_shared<const std::string>(absl::StrCat(
                      "HloModule test\n", kComputations, "ENTRY main {\n", body, "}\n")),
                  std::make_shared<Context>(), "test.hlo");
  if (!module.ok()) {
    ADD_FAILURE() << module.status();
    std::abort();
  }
  absl::StatusOr<Program> program = ImportModule(*std::move(module), {});
  if (!program.ok()) {
    ADD_FAILURE() << program.status();
    std::abort();
  }
  return *std::move(program);
}

std::string RuleOf(const std::string& body, const TargetRegistry* targets = nullptr) {
  const Program p = Parse(body);
  RuleTable rules(p, {.targets = targets});
  const ShardingRule* rule = rules.rule(FindInstr(p, "op"));
  if (!rules.status().ok()) return std::string(rules.status().message());
  return rule == nullptr ? "none" : rule->ToString();
}

std::string Unary(const std::string& operand, const std::string& op) {
  return RuleOf(absl::StrCat("x = ", operand, " parameter(0)\nROOT op = ", op, "\n"));
}

TEST(Rules, ElementwiseOpsPassEveryDimension) {
  EXPECT_EQ(Unary("f32[4,8]", "f32[4,8] tanh(x)"), "i j -> i j");
  EXPECT_EQ(RuleOf("x = f32[4,8] parameter(0)\ny = f32[4,8] parameter(1)\n"
                   "ROOT op = f32[4,8] add(x, y)\n"),
            "i j, i j -> i j");
  EXPECT_EQ(RuleOf("p = pred[] parameter(0)\nx = f32[4,8] parameter(1)\n"
                   "ROOT op = f32[4,8] select(p, x, x)\n"),
            ", i j, i j -> i j");
  EXPECT_EQ(Unary("f32[4,8]", "bf16[4,8] convert(x)"), "i j -> i j");
}

TEST(Rules, BitcastConvertKeepsTheSplitDimensionWhole) {
  EXPECT_EQ(Unary("f32[4,8]", "u8[4,8,4] bitcast-convert(x)"), "i j -> i j k need_replication={k}");
  EXPECT_EQ(Unary("f32[4,8]", "u32[4,8] bitcast-convert(x)"), "i j -> i j");
}

TEST(Rules, BroadcastAddsFactorsOfTheResult) {
  EXPECT_EQ(Unary("f32[8]", "f32[4,8] broadcast(x), dimensions={1}"), "i -> j i");
  EXPECT_EQ(Unary("f32[]", "f32[4] broadcast(x), dimensions={}"), "-> i");
}

TEST(Rules, ReshapeSharesEveryCommonCut) {
  EXPECT_EQ(Unary("f32[8]", "f32[2,4] reshape(x)"), "(i j) -> i j");
  EXPECT_EQ(Unary("f32[2,4]", "f32[8] reshape(x)"), "i j -> (i j)");
  EXPECT_EQ(Unary("f32[4,8]", "f32[1,4,1,8] reshape(x)"), "i j -> 1 i 1 j");
  EXPECT_EQ(Unary("f32[6,4]", "f32[2,12] reshape(x)"), "(i j) k -> i (j k) sizes={j:3}");
  EXPECT_EQ(Unary("f32[4,6]", "f32[8,3] reshape(x)"), "i (j k) -> (i j) k sizes={j:2}");
}

TEST(Rules, ReshapeWithoutARefinementSharesTheMajorPart) {
  EXPECT_EQ(Unary("f32[6,4]", "f32[8,3] reshape(x)"),
            "(i j) k -> (i l) m need_replication={j, k, l, m} sizes={i:2, j:3, l:4}");
  EXPECT_EQ(Unary("f32[3,5]", "f32[5,3] reshape(x)"), "i j -> k l need_replication={i, j, k, l}");
  EXPECT_EQ(Unary("f32[3,5,2]", "f32[5,6] reshape(x)"),
            "i j k -> l (m k) need_replication={i, j, l, m} sizes={m:3}");
}

TEST(Rules, TransposePermutesFactors) {
  EXPECT_EQ(Unary("f32[2,3,4]", "f32[4,2,3] transpose(x), dimensions={2,0,1}"), "i j k -> k i j");
}

TEST(Rules, MovesAlongADimensionArePermutations) {
  EXPECT_EQ(RuleOf("x = f32[4,8] parameter(0)\ny = f32[4,2] parameter(1)\n"
                   "ROOT op = f32[4,10] concatenate(x, y), dimensions={1}\n"),
            "i j, i j -> i j permutation={j}");
  EXPECT_EQ(Unary("f32[8,8]", "f32[8,4] slice(x), slice={[0:8], [2:6]}"),
            "i j -> i j permutation={j}");
  EXPECT_EQ(Unary("f32[8,8]", "f32[8,8] reverse(x), dimensions={0}"), "i j -> i j permutation={i}");
  EXPECT_EQ(RuleOf("x = f32[8,8] parameter(0)\nz = f32[] constant(0)\n"
                   "ROOT op = f32[8,11] pad(x, z), padding=0_0x1_2\n"),
            "i j, -> i j permutation={j}");
}

TEST(Rules, PermutationsHaveAnExtentPerTensor) {
  const Program p = Parse(
      "x = f32[8,8] parameter(0)\n"
      "ROOT op = f32[8,4] slice(x), slice={[0:8], [2:6]}\n");
  RuleTable rules(p, {});
  const ShardingRule* rule = rules.rule(FindInstr(p, "op"));
  EXPECT_EQ(rule->Extent(0, 1), 8);
  EXPECT_EQ(rule->Extent(1, 1), 4);
}

TEST(Rules, IotaPassesItsOwnDimensions) {
  EXPECT_EQ(RuleOf("ROOT op = s32[4,8] iota(), iota_dimension=1\n"), "-> i j");
}

TEST(Rules, DotHasBatchFreeAndContractedFactors) {
  EXPECT_EQ(RuleOf("x = f32[2,4,8] parameter(0)\ny = f32[2,8,16] parameter(1)\n"
                   "ROOT op = f32[2,4,16] dot(x, y), lhs_batch_dims={0}, rhs_batch_dims={0}, "
                   "lhs_contracting_dims={2}, rhs_contracting_dims={1}\n"),
            "i j k, i k l -> i j l reduction={k:add} pad={k:0}");
}

TEST(Rules, RaggedDotHasRowsAndAddsWhatTheGroupsGive) {
  EXPECT_EQ(RuleOf("x = f32[16,8] parameter(0)\ny = f32[4,8,2] parameter(1)\n"
                   "g = s32[4] parameter(2)\n"
                   "ROOT op = f32[16,2] ragged-dot(x, y, g), lhs_contracting_dims={1}, "
                   "rhs_contracting_dims={1}, lhs_ragged_dims={0}, rhs_group_dims={0}\n"),
            "i j, k j l, m -> i l reduction={j:add, k:add} need_replication={m} pad={j:0}");
}

TEST(Rules, RaggedDotHasAListOfSizesForEachPlaceBeforeTheRaggedDimension) {
  EXPECT_EQ(RuleOf("x = f32[2,3,16,8] parameter(0)\ny = f32[2,8,2,4] parameter(1)\n"
                   "g = s32[2,3,4] parameter(2)\n"
                   "ROOT op = f32[2,3,16,2] ragged-dot(x, y, g), lhs_batch_dims={0}, "
                   "rhs_batch_dims={0}, lhs_contracting_dims={3}, rhs_contracting_dims={1}, "
                   "lhs_ragged_dims={2}, rhs_group_dims={3}\n"),
            "i j k l, i l m n, i j o -> i j k m reduction={l:add, n:add} need_replication={o} "
            "pad={l:0}");
}

TEST(Rules, ScaledDotAddsWholeBlocks) {
  EXPECT_EQ(RuleOf("x = bf16[16,32] parameter(0)\ny = bf16[32,8] parameter(1)\n"
                   "s = bf16[16,8] parameter(2)\nt = bf16[4,8] parameter(3)\n"
                   "ROOT op = bf16[16,8] scaled-dot(x, y, s, t), lhs_contracting_dims={1}, "
                   "rhs_contracting_dims={0}\n"),
            "i (j k), (j l) m, i (j n), (j o) m -> i m reduction={j:add} "
            "need_replication={k, l, n, o} pad={j:0} sizes={j:4, k:8, l:8, n:2, o:1}");
}

TEST(Rules, ReduceSumsItsDimensionsIfTheOpIsKnown) {
  const std::string head = "x = f32[4,8] parameter(0)\nz = f32[] constant(0)\n";
  EXPECT_EQ(RuleOf(head + "ROOT op = f32[4] reduce(x, z), dimensions={1}, to_apply=sum\n"),
            "i j, -> i reduction={j:add}");
  EXPECT_EQ(RuleOf(head + "ROOT op = f32[8] reduce(x, z), dimensions={0}, to_apply=largest\n"),
            "i j, -> j reduction={i:max}");
  EXPECT_EQ(RuleOf(head + "ROOT op = f32[4] reduce(x, z), dimensions={1}, to_apply=keep\n"),
            "i j, -> i need_replication={j}");
  EXPECT_EQ(RuleOf(head + "ROOT op = (f32[4], f32[4]) reduce(x, x, z, z), dimensions={1}, "
                          "to_apply=pair\n"),
            "i j, i j,, -> i, i permutation={j}");
}

TEST(Rules, WindowsMoveAlongTheirDimensions) {
  const std::string head = "x = f32[4,8] parameter(0)\nz = f32[] constant(0)\n";
  EXPECT_EQ(RuleOf(head + "ROOT op = f32[4,4] reduce-window(x, z), window={size=1x2 stride=1x2}, "
                          "to_apply=sum\n"),
            "i j, -> i j permutation={j}");
  EXPECT_EQ(RuleOf(head + "ROOT op = f32[4,8] reduce-window(x, z), window={size=1x8 pad=0_0x7_0}, "
                          "to_apply=sum\n"),
            "i j, -> i j permutation={j}");
}

TEST(Rules, SortKeepsItsDimensionWhole) {
  EXPECT_EQ(Unary("f32[4,8]", "f32[4,8] sort(x), dimensions={1}, to_apply=less"),
            "i j -> i j need_replication={j}");
}

TEST(Rules, TopKCrossesItsLinesAndHasWholeResults) {
  EXPECT_EQ(Unary("f32[4,8]", "(f32[4,2], s32[4,2]) topk(x), k=2, largest=true"),
            "i j -> i k, i l need_replication={k, l} permutation={j}");
}

TEST(Rules, GatherOfRowsReducesOverTheTable) {
  EXPECT_EQ(RuleOf("t = f32[64,16] parameter(0)\nk = s32[4,8,1] parameter(1)\n"
                   "ROOT op = f32[4,8,16] gather(t, k), offset_dims={2}, collapsed_slice_dims={0}, "
                   "start_index_map={0}, index_vector_dim=2, slice_sizes={1,16}\n"),
            "i j, k l 1 -> k l j reduction={i:add}");
}

TEST(Rules, GatherBatchingDimsAreSharedByAllThree) {
  EXPECT_EQ(RuleOf("t = f32[4,64,16] parameter(0)\nk = s32[4,8,1] parameter(1)\n"
                   "ROOT op = f32[4,8,5] gather(t, k), offset_dims={2}, collapsed_slice_dims={1}, "
                   "start_index_map={1}, operand_batching_dims={0}, "
                   "start_indices_batching_dims={0}, index_vector_dim=2, slice_sizes={1,1,5}\n"),
            "i j k, i l 1 -> i l k reduction={j:add} need_replication={k}");
}

TEST(Rules, ScatterAddReducesOverItsUpdates) {
  const std::string head =
      "t = f32[64,16] parameter(0)\nk = s32[8,1] parameter(1)\nu = f32[8,16] parameter(2)\n";
  const std::string tail =
      "ROOT op = f32[64,16] scatter(t, k, u), update_window_dims={1}, inserted_window_dims={0}, "
      "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=";
  EXPECT_EQ(RuleOf(head + tail + "sum\n"), "i j, k 1, k j -> i j reduction={k:add}");
  EXPECT_EQ(RuleOf(head + tail + "keep\n"), "i j, k 1, k j -> i j need_replication={k}");
}

TEST(Rules, DynamicSlicesPassWhatTheyTakeInFull) {
  const std::string head = "x = f32[8,16] parameter(0)\ns = s32[] parameter(1)\n";
  EXPECT_EQ(RuleOf(head + "ROOT op = f32[1,16] dynamic-slice(x, s, s), "
                          "dynamic_slice_sizes={1,16}\n"),
            "i j,, -> 1 j reduction={i:add}");
  EXPECT_EQ(RuleOf(head + "u = f32[1,16] parameter(2)\n"
                          "ROOT op = f32[8,16] dynamic-update-slice(x, u, s, s)\n"),
            "i j, 1 j,, -> i j permutation={i}");
}

TEST(Rules, ConvolutionMovesAlongWindowedDimensions) {
  EXPECT_EQ(RuleOf("x = f32[2,8,8,3] parameter(0)\nw = f32[3,1,3,5] parameter(1)\n"
                   "ROOT op = f32[2,8,8,5] convolution(x, w), window={size=3x1 pad=1_1x0_0}, "
                   "dim_labels=b01f_01io->b01f\n"),
            "i j k l, m 1 l n -> i j k n reduction={l:add} need_replication={m} permutation={j} "
            "pad={l:0}");
}

TEST(Rules, LinearAlgebraKeepsMatricesWhole) {
  EXPECT_EQ(Unary("f32[2,8,8]", "f32[2,8,8] cholesky(x), lower=true"),
            "i j k -> i j k need_replication={j, k}");
  EXPECT_EQ(RuleOf("x = f32[2,8,8] parameter(0)\ny = f32[2,8,3] parameter(1)\n"
                   "ROOT op = f32[2,8,3] triangular-solve(x, y), left_side=true, lower=true, "
                   "transpose_a=NO_TRANSPOSE\n"),
            "i j k, i j l -> i j l need_replication={j, k}");
  EXPECT_EQ(Unary("c64[4,8]", "c64[4,8] fft(x), fft_type=FFT, fft_length={8}"),
            "i j -> i j need_replication={j}");
}

TEST(Rules, RandomBitsAreWhole) {
  EXPECT_EQ(Unary("u64[2]", "(u64[2], u32[8]) rng-bit-generator(x), algorithm=rng_default"),
            "i -> j, k need_replication={i, j, k}");
}

TEST(Rules, CollectivesPassWhatTheyDoNotTouch) {
  const Program p = Parse(
      "x = f32[8,16] parameter(0)\n"
      "ROOT op = f32[8,16] all-reduce(x), replica_groups={}, to_apply=sum\n");
  RuleTable rules(p, {});
  EXPECT_EQ(rules.op_class(FindInstr(p, "op")), OpClass::kManualOnly);
  EXPECT_EQ(rules.rule(FindInstr(p, "op"))->ToString(), "i j -> i j");
}

TEST(Rules, EqualInstructionsShareOneRule) {
  const Program p = Parse(
      "x = f32[4,8] parameter(0)\na = f32[4,8] reverse(x), dimensions={0}\n"
      "b = f32[4,8] reverse(a), dimensions={0}\nROOT op = f32[4,8] reverse(b), dimensions={1}\n");
  RuleTable rules(p, {});
  EXPECT_EQ(rules.rule(FindInstr(p, "a")), rules.rule(FindInstr(p, "b")));
  EXPECT_NE(rules.rule(FindInstr(p, "a")), rules.rule(FindInstr(p, "op")));
  EXPECT_EQ(rules.misses(), 2);
  EXPECT_EQ(rules.hits(), 1);
}

TEST(Rules, ElementwiseOpsOfTheSameShapesShareOneRule) {
  const Program p = Parse(
      "x = f32[4,8] parameter(0)\na = f32[4,8] tanh(x)\nb = f32[4,8] exponential(a)\n"
      "ROOT op = bf16[4,8] convert(b)\n");
  RuleTable rules(p, {});
  EXPECT_EQ(rules.rule(FindInstr(p, "a")), rules.rule(FindInstr(p, "b")));
  EXPECT_NE(rules.kind(FindInstr(p, "a")), rules.kind(FindInstr(p, "b")));
  EXPECT_NE(rules.rule(FindInstr(p, "b")), rules.rule(FindInstr(p, "op")));
}

std::string Call(const std::string& attributes) {
  return absl::StrCat("x = f32[4,8,8] parameter(0)\n",
                      "ROOT op = f32[4,8,8] custom-call(x), custom_call_target=\"my_op\"",
                      attributes, "\n");
}

OpClass ClassOfCall(const std::string& body, const TargetRegistry* targets = nullptr) {
  const Program p = Parse(body);
  RuleTable rules(p, {.targets = targets});
  return rules.op_class(FindInstr(p, "op"));
}

TEST(CustomCallRules, AnUnknownTargetIsMissing) {
  EXPECT_EQ(ClassOfCall(Call("")), OpClass::kMissing);
  EXPECT_EQ(ClassOfCall(Call(", custom_call_has_side_effect=true")), OpClass::kMissing);
}

TEST(CustomCallRules, TheCallsOwnRuleWinsOverTheRegistry) {
  TargetRegistry targets;
  ASSERT_TRUE(targets.RegisterRule("my_op", {.rule = "a b c -> a b c"}).ok());
  EXPECT_EQ(RuleOf(Call(""), &targets), "a b c -> a b c");
  EXPECT_EQ(
      RuleOf(Call(", frontend_attributes={xla.sdy.sharding_rule=\"#sdy.op_sharding_rule<([i, j, "
                  "k])->([i, j, k]) {i=4, j=8, k=8} need_replication={k}, custom>\"}"),
             &targets),
      "i j k -> i j k need_replication={k}");
}

// The text has no op for a reduction, and says nothing of one over a factor that a result has.
TEST(CustomCallRules, WhatSdyTextLeavesOpenIsTakenFromTheRegistry) {
  TargetRegistry targets;
  ASSERT_TRUE(targets
                  .RegisterRule("norm_bwd", {.rule = "b d, b d -> b d, d",
                                             .reduction = {{"b", PartialOp::kMax}}})
                  .ok());
  const std::string call = R"(
  x = f32[8,4] parameter(0)
  ROOT op = (f32[8,4], f32[4]) custom-call(x, x), custom_call_target="norm_bwd", frontend_attributes={xla.sdy.sharding_rule="#sdy.op_sharding_rule<([i, j], [i, j])->([i, j], [j]) {i=8, j=4}, custom>"}
)";
  EXPECT_EQ(RuleOf(call, &targets), "b d, b d -> b d, d reduction={b:max}");
  // Where nothing is registered, nothing combines the second result.
  EXPECT_EQ(RuleOf(call), "i j, i j -> i j, j need_replication={i}");
}

TEST(CustomCallRules, NumBatchDimsKeepsTheRestOfAnOwnRuleWhole) {
  EXPECT_EQ(RuleOf(Call(", frontend_attributes={num_batch_dims=\"1\", "
                        "xla.sdy.sharding_rule=\"#sdy.op_sharding_rule<([i, j, "
                        "k])->([i, l, m]) {i=4, j=8, k=8, l=8, m=8}, custom>\"}")),
            "i j k -> i l m need_replication={j, k, l, m}");
}

TEST(CustomCallRules, NumBatchDimsAloneIsABatchRule) {
  EXPECT_EQ(RuleOf(Call(", frontend_attributes={num_batch_dims=\"2\"}")),
            "b0 b1 d0 -> b0 b1 d1 need_replication={d0, d1}");
}

TEST(CustomCallRules, ARuleThatDoesNotFitIsReportedWithTheInstruction) {
  TargetRegistry targets;
  ASSERT_TRUE(targets.RegisterRule("my_op", {.rule = "a b -> a b"}).ok());
  const std::string error = RuleOf(Call(""), &targets);
  EXPECT_NE(error.find("E111"), std::string::npos) << error;
  EXPECT_NE(error.find("%op"), std::string::npos) << error;
}

TEST(CustomCallRules, PlacementAnnotationsPassEverything) {
  EXPECT_EQ(RuleOf("x = f32[4,8] parameter(0)\nROOT op = f32[4,8] custom-call(x), "
                   "custom_call_target=\"annotate_device_placement\"\n"),
            "i j -> i j");
}

TEST(CustomCallRules, CallsOverScalarsNeedNoRule) {
  EXPECT_EQ(ClassOfCall("x = f32[] parameter(0)\n"
                        "ROOT op = f32[] custom-call(x), custom_call_target=\"my_op\"\n"),
            OpClass::kRule);
}

TEST(CustomCallRules, CallbacksHaveTheirOwnClass) {
  TargetRegistry targets;
  ASSERT_TRUE(targets.RegisterCustomCallPartitioner("my_op", {}).ok());
  EXPECT_EQ(ClassOfCall(Call(""), &targets), OpClass::kCallbacks);
}

TEST(CustomCallRules, MayReplicateByNameOrAll) {
  const Program p = Parse(Call(""));
  EXPECT_FALSE(RuleTable(p, {}).MayReplicate("my_op"));
  for (const char* allowed : {"my_op", "all"}) {
    EXPECT_TRUE(
        RuleTable(p, {.targets = nullptr, .allow_replicate = {allowed}}).MayReplicate("my_op"));
  }
}

TEST(Rules, NamesStartAtI) {
  EXPECT_EQ(FactorName(0), "i");
  EXPECT_EQ(FactorName(17), "z");
  EXPECT_EQ(FactorName(18), "a");
  EXPECT_EQ(FactorName(26), "f26");
}

}  // namespace
}  // namespace shardcall
