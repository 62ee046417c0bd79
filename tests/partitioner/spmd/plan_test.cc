// SPDX-License-Identifier: Apache-2.0
// The plan: its memo, its choices, what it refuses and what it warns of.
#include "shardcall/partitioner/spmd/plan/plan.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "shardcall/partitioner/ir/analysis/trip_count.h"
#include "tests/partitioner/spmd/plan_testing.h"
#include "tests/support/test_targets.h"

namespace shardcall {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

std::string Layers(int n) {
  std::string text = "  x0 = f32[64,32] parameter(0), sharding={devices=[4,1]<=[4]}\n";
  for (int i = 0; i < n; ++i) {
    absl::StrAppend(&text, "  w", i, " = f32[32,32] parameter(", i + 1, ")\n");
    absl::StrAppend(&text, "  d", i, " = f32[64,32] dot(x", i, ", w", i,
                    "), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n");
    absl::StrAppend(&text, i + 1 == n ? "  ROOT x" : "  x", i + 1, " = f32[64,32] negate(d", i,
                    i + 1 == n ? "), sharding={devices=[4,1]<=[4]}\n" : ")\n");
  }
  return text;
}

TEST(PlanMemo, EqualLayersAreDecidedOnce) {
  const auto one = Done(Layers(1), 4), ten = Done(Layers(10), 4);
  EXPECT_EQ(one->plan.memo_hits, 0);
  EXPECT_EQ(one->plan.memo_misses, 2);
  EXPECT_EQ(ten->plan.memo_misses, 2);
  EXPECT_EQ(ten->plan.memo_hits, 18);
}

TEST(PlanMemo, OtherStatesAreOtherDecisions) {
  const auto p = Done(R"(
  x = f32[8,8] parameter(0), sharding={devices=[2,1]<=[2]}
  y = f32[8,8] parameter(1), sharding={devices=[1,2]<=[2]}
  a = f32[8,8] negate(x)
  b = f32[8,8] negate(y)
  ROOT t = (f32[8,8], f32[8,8]) tuple(a, b)
)",
                      2);
  EXPECT_EQ(p->plan.memo_misses, 2);
}

TEST(PlanChoice, MatchingShardsMoveNothing) {
  const auto p = Done(Layers(3), 4);
  EXPECT_THAT(p->local.collectives, IsEmpty());
  EXPECT_THAT(p->plan.fallbacks, IsEmpty());
}

TEST(PlanChoice, AContractedFactorIsReducedOnceForAllUsers) {
  const auto p = Done(R"(
  x = f32[64,64] parameter(0), sharding={devices=[1,4]<=[4]}
  w = f32[64,64] parameter(1), sharding={devices=[4,1]<=[4]}
  d = f32[64,64] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}, sharding={replicated}
  a = f32[64,64] add(d, d)
  ROOT m = f32[64,64] multiply(a, d)
)",
                      4);
  EXPECT_EQ(CountOpcode(*p, Opcode::kAllReduce), 1);
  EXPECT_THAT(p->local.collectives, SizeIs(1));
}

TEST(PlanChoice, PartialSumsIntoAShardedResultAreScattered) {
  const auto p = Done(R"(
  x = f32[64,64] parameter(0), sharding={devices=[1,4]<=[4]}
  w = f32[64,64] parameter(1), sharding={devices=[4,1]<=[4]}
  ROOT d = f32[64,64] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}, sharding={devices=[4,1]<=[4]}
)",
                      4);
  EXPECT_EQ(CountOpcode(*p, Opcode::kReduceScatter), 1);
  EXPECT_THAT(p->local.collectives, SizeIs(1));
}

TEST(Fallback, EmptyWhereHandlersAndRulesSuffice) {
  EXPECT_THAT(Done(Layers(2), 4)->plan.fallbacks, IsEmpty());
}

TEST(Fallback, NamesTheInstructionAndTheDimension) {
  const auto p = Done(R"(
less {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = pred[] compare(a, b), direction=LT
}

ENTRY main {
  x = f32[8,8] parameter(0), sharding={devices=[1,4]<=[4]}
  ROOT sorted = f32[8,8] sort(x), dimensions={1}, to_apply=less
}
)",
                      4);
  ASSERT_THAT(p->plan.fallbacks, SizeIs(1));
  const Fallback& f = p->plan.fallbacks[0];
  EXPECT_EQ(p->global->program.module.instr(f.instr).name, "sorted");
  EXPECT_THAT(f.reason, HasSubstr("sort takes longer on shards of dim 1 of operand 0"));
}

constexpr char kMissing[] = R"(
  x = f32[8,8] parameter(0), sharding={devices=[4,1]<=[4]}
  a = f32[8,8] custom-call(x), custom_call_target="first_one", metadata={op_name="jit(f)/first"}
  b = f32[8,8] custom-call(a), custom_call_target="second_one", sharding={devices=[4,1]<=[4]}
  ROOT r = f32[8,8] add(a, b)
)";

TEST(MissingTargets, AllStandInOneError) {
  const absl::Status s = Refused(kMissing, 4);
  EXPECT_THAT(s, Fails("E101", "target \"first_one\" (%a) has no sharding rule"));
  EXPECT_THAT(s, Fails("E101", "target \"second_one\" (%b) has no sharding rule"));
  EXPECT_THAT(s, Fails("E101", "jit(f)/first"));
  EXPECT_THAT(s, Fails("E101", "--allow-replicate=first_one"));
  EXPECT_THAT(s, Fails("E101", "operand 0 is sharded"));
}

TEST(MissingTargets, ManyCallsOfOneAreOneError) {
  std::string text =
      "x = f32[8] parameter(0), sharding={devices=[4]<=[4]}\nc0 = f32[8] "
      "custom-call(x), custom_call_target=\"again\"\n";
  for (int k = 1; k < 50; ++k) {
    absl::StrAppend(&text, k == 49 ? "ROOT " : "", "c", k, " = f32[8] custom-call(c", k - 1,
                    "), custom_call_target=\"again\"\n");
  }
  const absl::Status s = Refused(text, 4);
  EXPECT_THAT(s, Fails("E101", "target \"again\" (%c0) has no sharding rule"));
  EXPECT_THAT(s, Fails("E101", "and so have 42 more calls of it"));
  EXPECT_THAT(std::string(s.message()), Not(HasSubstr("(%c8)")));
}

// A loop whose carry must come out replicated; `body` makes y of x.
std::string Loop(const std::string& body, const std::string& annotation = "") {
  return absl::StrCat(R"(HloModule m, num_partitions=2

cond {
  c = (s32[], f32[8,4]) parameter(0)
  i = s32[] get-tuple-element(c), index=0
  k = s32[] constant(3)
  ROOT r = pred[] compare(i, k), direction=LT
}

body {
  c = (s32[], f32[8,4]) parameter(0)
  i = s32[] get-tuple-element(c), index=0
  x = f32[8,4] get-tuple-element(c), index=1
  one = s32[] constant(1)
  j = s32[] add(i, one)
)",
                      body, R"(
  ROOT r = (s32[], f32[8,4]) tuple(j, y)
}

ENTRY main {
  x = f32[8,4] parameter(0), sharding={devices=[2,1]<=[2]}
  zero = s32[] constant(0)
  t = (s32[], f32[8,4]) tuple(zero, x)
  w = (s32[], f32[8,4]) while(t), condition=cond, body=body)",
                      annotation, R"(
  ROOT r = f32[8,4] get-tuple-element(w), index=1
}
)");
}

TEST(MissingTargets, WhatALoopOrABranchWouldGatherForThemIsNamed) {
  EXPECT_THAT(
      PartitionText(Loop("  y = f32[8,4] custom-call(x), custom_call_target=\"mystery\""), {}),
      Fails("E101", "operand 0 is sharded [{\"x0\"}, {}], outside of its loop or branch"));
  EXPECT_THAT(PartitionText(R"(HloModule m, num_partitions=2

yes {
  x = f32[8,4] parameter(0), sharding={replicated}
  ROOT y = f32[8,4] custom-call(x), custom_call_target="mystery"
}

no {
  ROOT x = f32[8,4] parameter(0)
}

ENTRY main {
  p = pred[] parameter(0)
  x = f32[8,4] parameter(1), sharding={devices=[2,1]<=[2]}
  ROOT r = f32[8,4] conditional(p, x, x), true_computation=yes, false_computation=no
}
)",
                            {}),
              Fails("E101", "outside of its loop or branch"));
}

TEST(MissingTargets, WhatTheProgramItselfReplicatesIsNoError) {
  // The carry is annotated in the body, the loop is annotated, the call stands
  // behind the loop.
  EXPECT_TRUE(PartitionText(Loop(R"(  z = f32[8,4] custom-call(x), custom_call_target="mystery"
  y = f32[8,4] custom-call(z), custom_call_target="Sharding", sharding={replicated})"),
                            {})
                  .ok());
  EXPECT_TRUE(PartitionText(Loop("  y = f32[8,4] custom-call(x), custom_call_target=\"mystery\"",
                                 ", sharding={{replicated}, {replicated}}"),
                            {})
                  .ok());
  std::string behind = Loop("  y = f32[8,4] negate(x)");
  behind.replace(behind.find("ROOT r = f32[8,4] get"), 5, "");
  behind.replace(behind.rfind('}'), 1,
                 R"(  q = f32[8,4] custom-call(r), custom_call_target="mystery"
  ROOT both = (f32[8,4], f32[8,4]) tuple(r, q)
})");
  EXPECT_TRUE(PartitionText(behind, {}).ok());
}

TEST(MissingTargets, ThoseBehindOthersAreNamedToo) {
  const absl::Status s = Refused(R"(
  x = f32[8,8] parameter(0), sharding={devices=[4,1]<=[4]}
  y = f32[8,8] parameter(1)
  a = f32[8,8] custom-call(x), custom_call_target="first_one"
  t = f32[8,8] transpose(a), dimensions={1,0}
  b = f32[8,8] custom-call(t), custom_call_target="second_one"
  c = f32[8,8] custom-call(y), custom_call_target="third_one"
  ROOT r = (f32[8,8], f32[8,8]) tuple(b, c)
)",
                                 4);
  EXPECT_THAT(s, Fails("E101", "target \"first_one\" (%a) has no sharding rule; operand 0"));
  EXPECT_THAT(s, Fails("E101", "target \"second_one\" (%b) has no sharding rule; it works on"));
  EXPECT_THAT(s, Not(Fails("E101", "third_one")));
}

TEST(MissingTargets, OptInPerTargetOrForAll) {
  EXPECT_THAT(Refused(kMissing, 4, {.allow_replicate = {"first_one"}}),
              testing::AllOf(Fails("E101", "second_one"), Not(Fails("E101", "\"first_one\""))));
  EXPECT_TRUE(Refused(kMissing, 4, {.allow_replicate = {"first_one", "second_one"}}).ok());
  EXPECT_TRUE(Refused(kMissing, 4, {.allow_replicate = {"all"}}).ok());
}

// As XLA has it, whatever device the annotation names: one axis may shard several operands, and
// only sums over shards are added up.
TEST(CallsOnShards, TakeTheirOperandsAsTheyAre) {
  const auto p = Done(R"(
  x = f32[8,8] parameter(0), sharding={devices=[4,1]<=[4]}
  y = f32[4,8] parameter(1), sharding={devices=[1,4]<=[4]}
  w = f32[8,8] parameter(2), sharding={devices=[4,1]<=[4]}
  d = f32[4,8] dot(y, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  t = token[] after-all()
  c = token[] custom-call(t, x, y, d), custom_call_target="xla_ffi_partitioned_python_cpu_callback", custom_call_has_side_effect=true, sharding={maximal device=0}
  ROOT r = f32[8,8] add(x, x), sharding={devices=[4,1]<=[4]}
)",
                      4);
  ASSERT_THAT(p->local.collectives, SizeIs(1));
  EXPECT_EQ(CountOpcode(*p, Opcode::kAllReduce), 1);
  EXPECT_EQ(CountOpcode(*p, Opcode::kConditional), 0);
  const Module& m = p->local.module;
  for (int k = 0; k < m.num_instructions(); ++k) {
    const Instruction& call = m.instr(InstrId(k));
    if (call.opcode != Opcode::kCustomCall) continue;
    EXPECT_EQ(m.instr(m.operand(InstrId(k), 1)).shape->dim(0), 2);
    EXPECT_EQ(m.instr(m.operand(InstrId(k), 2)).shape->dim(1), 2);
    EXPECT_EQ(m.instr(m.operand(InstrId(k), 3)).shape->dim(1), 8);
  }
}

// An array must come from somewhere: such a call has no rule.
TEST(CallsOnShards, ResultInNoArray) {
  EXPECT_THAT(Refused(R"(
  x = f32[8,8] parameter(0), sharding={devices=[4,1]<=[4]}
  ROOT c = f32[8,8] custom-call(x), custom_call_target="xla_ffi_partitioned_python_cpu_callback"
)",
                      4),
              Fails("E101", "xla_ffi_partitioned_python_cpu_callback"));
}

TEST(MissingTargets, ReplicatedOnesAreNoError) {
  const auto p = Done(R"(
  x = f32[8,8] parameter(0), sharding={replicated}
  a = f32[8,8] custom-call(x), custom_call_target="unknown_one"
  ROOT r = f32[8,8] add(a, a)
)",
                      4);
  EXPECT_THAT(p->plan.fallbacks, IsEmpty());
  EXPECT_THAT(p->local.collectives, IsEmpty());
}

TEST(MissingTargets, ManualOnesAreNoError) {
  EXPECT_TRUE(Refused(R"(
  x = f32[8,8] parameter(0)
  c = f32[8,8] custom-call(x), custom_call_target="Sharding", sharding={devices=[4,1]<=[4]}
  l = f32[2,8] custom-call(c), custom_call_target="SPMDFullToShardShape", sharding={manual}
  a = f32[2,8] custom-call(l), custom_call_target="unknown_one", sharding={manual}
  ROOT r = f32[8,8] custom-call(a), custom_call_target="SPMDShardToFullShape", sharding={devices=[4,1]<=[4]}
)",
                      4)
                  .ok());
}

TEST(UnevenReductions, WithoutAPadValueAreRefused) {
  const TextOptions options{.targets = &TestTargets(), .handlers = &TestHandlers()};
  const std::string text = R"(
  x = f32[8,10] parameter(0), sharding={devices=[1,4]<=[4]}
  ROOT s = f32[8] custom-call(x), custom_call_target="TARGET"
)";
  EXPECT_THAT(Refused(absl::StrReplaceAll(text, {{"TARGET", "test_sum_even"}}), 4, options),
              Fails("E150", "factor d = 10 over 4 gives 3,3,3,1"));
  // It shows the factor in the rule as it was registered.
  TargetRegistry targets;
  ASSERT_TRUE(targets
                  .RegisterRule("mine",
                                {.rule = "bd d -> bd", .reduction = {{"d", PartialOp::kSum}}}, "",
                                "manifest m.json")
                  .ok());
  EXPECT_THAT(
      Refused(absl::StrReplaceAll(text, {{"TARGET", "mine"}}), 4, {.targets = &targets}),
      Fails("E150", "as it is\n  bd d -> bd\n     ^ (rule of target \"mine\", manifest m.json)"));
  // What leaves a maximum as it is.
  ASSERT_TRUE(targets
                  .RegisterRule("largest",
                                {.rule = "b d -> b", .reduction = {{"d", PartialOp::kMax}}}, "",
                                "manifest m.json")
                  .ok());
  EXPECT_THAT(Refused(absl::StrReplaceAll(text, {{"TARGET", "largest"}}), 4, {.targets = &targets}),
              Fails("E150", R"(Declare "pad": {"d": "-inf"} in its rule, if padding of "-inf" )"
                            R"(leaves its "max" as it is)"));
  EXPECT_TRUE(Refused(absl::StrReplaceAll(text, {{"TARGET", "test_sum"}}), 4, options).ok());
  EXPECT_TRUE(
      Refused(absl::StrReplaceAll(text, {{"TARGET", "test_sum_even"}, {"10]", "12]"}}), 4, options)
          .ok());
}

// ---- callbacks ----

absl::Status WithCallback(std::function<absl::Status(PartitionContext&)> partition) {
  TargetRegistry targets;
  PartitionerCallbacks callbacks;
  callbacks.partition = std::move(partition);
  EXPECT_TRUE(targets.RegisterCustomCallPartitioner("mine", callbacks).ok());
  return Refused(R"(
  x = f32[8,8] parameter(0), sharding={devices=[4,1]<=[4]}
  c = f32[8,8] custom-call(x), custom_call_target="mine", sharding={devices=[4,1]<=[4]}
  ROOT r = f32[8,8] add(c, x)
)",
                 4, {.targets = &targets});
}

TEST(Callbacks, ThrowsBecomeErrors) {
  EXPECT_THAT(
      WithCallback([](PartitionContext&) -> absl::Status { throw std::runtime_error("boom"); }),
      Fails("E121", "threw: boom"));
  EXPECT_THAT(WithCallback([](PartitionContext&) -> absl::Status { throw 7; }),
              Fails("E121", "partition callback of \"mine\" (%c) threw"));
}

TEST(Callbacks, TheirOwnErrorsAreNamed) {
  EXPECT_THAT(WithCallback([](PartitionContext&) { return absl::InternalError("no way"); }),
              Fails("E121", "no way"));
}

TEST(Callbacks, MissingResultsAreNamed) {
  EXPECT_THAT(WithCallback([](PartitionContext&) { return absl::OkStatus(); }),
              Fails("E120", "set no result 0"));
}

TEST(Callbacks, WrongLocalShapesAreNamed) {
  EXPECT_THAT(WithCallback([](PartitionContext& c) -> absl::Status {
                const Sharding* s = c.operand_sharding(0);
                const Sharding* whole = ReplicatedSharding(*c.call().context, c.call().mesh, 2, {});
                absl::StatusOr<LocalValue> x = c.Operand(0, whole);
                return c.SetResult(0, *x, s);
              }),
              Fails("E120", "the local shape f32[2,8]"));
}

TEST(Callbacks, IndicesAndRanksAreChecked) {
  EXPECT_THAT(WithCallback(
                  [](PartitionContext& c) { return c.Operand(3, c.operand_sharding(0)).status(); }),
              Fails("E120", "operand 3"));
  EXPECT_THAT(WithCallback([](PartitionContext& c) {
                return c.SetResult(1, LocalValue{}, c.operand_sharding(0));
              }),
              Fails("E120", "result 1"));
  EXPECT_THAT(WithCallback([](PartitionContext& c) {
                const Sharding* s = ReplicatedSharding(*c.call().context, c.call().mesh, 1, {});
                return c.Operand(0, s).status();
              }),
              Fails("E120", "rank 1"));
  EXPECT_THAT(WithCallback([](PartitionContext& c) {
                absl::StatusOr<LocalValue> x = c.Operand(0, c.operand_sharding(0));
                return c.AllGather(*x, 5, {}).status();
              }),
              Fails("E120", "a dimension that the value does not have"));
}

// ---- trip counts ----

std::string Loop(const std::string& start, const std::string& step, const std::string& compare,
                 const std::string& limit) {
  return absl::StrReplaceAll(
      R"(
less {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = pred[] compare(a, b), direction=LT
}

body {
  p = (s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  v = f32[8] get-tuple-element(p), index=1
  k = s32[] constant(STEP)
  n = s32[] add(i, k)
  s = f32[8] custom-call(v), custom_call_target="Sharding", sharding={replicated}
  t = f32[8] sort(s), dimensions={0}, to_apply=less
  u = f32[8] custom-call(t), custom_call_target="Sharding", sharding={devices=[4]<=[4]}
  ROOT r = (s32[], f32[8]) tuple(n, u)
}

cond {
  p = (s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  k = s32[] constant(LIMIT)
  ROOT r = pred[] compare(i, k), direction=COMPARE
}

ENTRY main {
  v = f32[8] parameter(0), sharding={devices=[4]<=[4]}
  q = s32[] parameter(1)
  z = s32[] START
  t = (s32[], f32[8]) tuple(z, v)
  w = (s32[], f32[8]) while(t), condition=cond, body=body
  ROOT r = f32[8] get-tuple-element(w), index=1, sharding={devices=[4]<=[4]}
}
)",
      {{"START", start}, {"STEP", step}, {"COMPARE", compare}, {"LIMIT", limit}});
}

TEST(TripCounts, CountedLoopsWeighTheirCollectives) {
  for (const auto& [text, count] : std::vector<std::pair<std::string, double>>{
           {Loop("constant(0)", "1", "LT", "12"), 12},
           {Loop("constant(2)", "3", "LT", "12"), 4},
           {Loop("constant(0)", "1", "LE", "12"), 13},
           {Loop("constant(20)", "1", "LT", "12"), 0},
           {Loop("negate(q)", "1", "LT", "12"), CostModel().trip_count}}) {
    const auto p = Done(text, 4);
    ASSERT_THAT(p->local.collectives, SizeIs(1));
    EXPECT_EQ(p->local.collectives[0].opcode, Opcode::kAllGather);
    EXPECT_EQ(p->local.collectives[0].trip_count, count);
  }
}

// ---- header ----

TEST(Header, AliasesFollowLocalShapesOrAreDroppedWithAWarning) {
  const std::string text =
      R"(HloModule m, input_output_alias={ {}: (0, {}, may-alias) }, num_partitions=4
ENTRY main {
  x = f32[8,8] parameter(0), sharding={devices=[4,1]<=[4]}
  ROOT r = f32[8,8] negate(x), sharding=OUT
}
)";
  auto same = PartitionText(absl::StrReplaceAll(text, {{"OUT", "{devices=[4,1]<=[4]}"}}), {});
  ASSERT_TRUE(same.ok()) << same.status();
  EXPECT_THAT(LocalText(**same), HasSubstr("input_output_alias"));
  EXPECT_THAT((*same)->local.warnings, IsEmpty());
  auto other = PartitionText(absl::StrReplaceAll(text, {{"OUT", "{replicated}"}}), {});
  ASSERT_TRUE(other.ok()) << other.status();
  EXPECT_THAT(LocalText(**other), Not(HasSubstr("input_output_alias")));
  ASSERT_THAT((*other)->local.warnings, SizeIs(1));
  EXPECT_THAT((*other)->local.warnings[0], HasSubstr("W220 the alias of parameter 0"));
}

TEST(Header, LayoutsAreThoseOfLocalShapesAndShardingsAreGone) {
  const auto p = PartitionText(
      R"(HloModule m, entry_computation_layout={(f32[8,6]{0,1})->f32[8,6]{0,1}}, num_partitions=2
ENTRY main {
  x = f32[8,6]{0,1} parameter(0), sharding={devices=[2,1]<=[2]}
  ROOT r = f32[8,6]{0,1} negate(x), sharding={devices=[2,1]<=[2]}
}
)",
      {});
  ASSERT_TRUE(p.ok()) << p.status();
  const std::string text = LocalText(**p);
  EXPECT_THAT(text, HasSubstr("entry_computation_layout={(f32[4,6]{0,1})->f32[4,6]{0,1}}"));
  EXPECT_THAT(text, HasSubstr("num_partitions=2"));
  EXPECT_THAT(text, Not(HasSubstr("sharding=")));
}

TEST(Header, LayoutsThatItDoesNotSayAreThoseOfTheProgram) {
  const auto p = PartitionText(R"(HloModule m, num_partitions=2
ENTRY main {
  x = f32[8,6]{0,1} parameter(0), sharding={devices=[2,1]<=[2]}
  ROOT r = f32[8,6]{0,1} copy(x), sharding={replicated}
}
)",
                               {});
  ASSERT_TRUE(p.ok()) << p.status();
  EXPECT_THAT(LocalText(**p),
              HasSubstr("entry_computation_layout={(f32[4,6]{0,1})->f32[8,6]{0,1}}"));
}

TEST(Channels, NewOnesStartAboveThoseOfTheProgram) {
  const auto p = Done(R"(
add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b)
}

ENTRY main {
  x = f32[8] parameter(0), sharding={devices=[4]<=[4]}
  l = f32[2] custom-call(x), custom_call_target="SPMDFullToShardShape", sharding={manual}
  a = f32[2] all-reduce(l), channel_id=7, replica_groups={{0,1,2,3}}, use_global_device_ids=true, to_apply=add, sharding={manual}
  f = f32[8] custom-call(a), custom_call_target="SPMDShardToFullShape", sharding={devices=[4]<=[4]}
  ROOT r = f32[8] custom-call(f), custom_call_target="Sharding", sharding={replicated}
}
)",
                      4);
  const std::string text = LocalText(*p);
  EXPECT_THAT(text, HasSubstr("channel_id=7"));
  EXPECT_THAT(text, HasSubstr("channel_id=8"));
}

TEST(Determinism, TwoRunsPrintTheSameBytes) {
  EXPECT_EQ(LocalText(*Done(Layers(4), 4)), LocalText(*Done(Layers(4), 4)));
}

}  // namespace
}  // namespace shardcall
