// SPDX-License-Identifier: Apache-2.0
// Propagation over whole programs: every kind of edge, constraints, conflicts,
// provenance, determinism.
#include "shardcall/partitioner/propagation/propagation.h"

#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/partitioner/propagation/propagation_testing.h"

namespace shardcall {
namespace {

using ::testing::HasSubstr;

TEST(Propagation, GoesForwardFromArguments) {
  const Propagated p = PropagateEntry(
      "x = f32[8,16] parameter(0), @[{'a'}, {}]\n"
      "w = f32[16,32] parameter(1), @[{}, {'b'}]\n"
      "y = f32[8,32] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
      "ROOT z = f32[8,32] tanh(y)\n");
  EXPECT_EQ(p.Of("y"), "[{\"a\"}, {\"b\"}]");
  EXPECT_EQ(p.Of("z"), "[{\"a\"}, {\"b\"}]");
  EXPECT_EQ(p.Explain("z"),
            "dim 0: argument 0 -> %y operand 0 -> result -> %z operand 0 -> result; "
            "dim 1: argument 1 -> %y operand 1 -> result -> %z operand 0 -> result");
  EXPECT_EQ(p.Explain("x"), "argument 0");
  EXPECT_EQ(p.result.outputs[0]->ToString(), "[{\"a\"}, {\"b\"}]");
}

TEST(Propagation, GoesBackwardFromConstraints) {
  const Propagated p = PropagateEntry(
      "x = f32[8,16] parameter(0)\n"
      "y = f32[8,16] tanh(x)\n"
      "c = f32[8,16] custom-call(y), custom_call_target=\"Sharding\", @[{'a'}, {'b'}]\n"
      "ROOT z = f32[8,16] negate(c)\n");
  EXPECT_EQ(p.Of("x"), "[{\"a\"}, {\"b\"}]");
  EXPECT_EQ(p.Of("z"), "[{\"a\"}, {\"b\"}]");
  EXPECT_EQ(p.Explain("x"), "constraint at %c -> %c result -> operand 0 -> %y result -> operand 0");
}

TEST(Propagation, WithoutPropagationOnlyConstraintsCount) {
  const Propagated p = PropagateEntry(
      "x = f32[8,16] parameter(0), @[{'a'}, {}]\n"
      "ROOT y = f32[8,16] tanh(x)\n",
      nullptr, false);
  EXPECT_EQ(p.Of("x"), "[{\"a\"}, {}]");
  EXPECT_EQ(p.Of("y"), "[{}, {}]");
  EXPECT_EQ(p.Explain("y"),
            "replicated: %y has sharded values, and passes none of their axes to it");
}

TEST(Propagation, ClosedDimensionsStayAsTheyAre) {
  const Propagated p = PropagateEntry(
      "x = f32[8,16] parameter(0), @[{'a'}, {'b'}]\n"
      "c = f32[8,16] custom-call(x), custom_call_target=\"Sharding\", @[{'a'}, {}]\n"
      "o = f32[8,16] custom-call(x), custom_call_target=\"Sharding\", @[{'a'}, {?}]\n"
      "ROOT t = (f32[8,16], f32[8,16]) tuple(c, o)\n");
  EXPECT_EQ(p.Of("c"), "[{\"a\"}, {}]");
  EXPECT_EQ(p.Of("o"), "[{\"a\"}, {\"b\"}]");
}

TEST(Propagation, ExplicitlyReplicatedAxesAreNotTaken) {
  const Propagated p = PropagateEntry(
      "x = f32[8,16] parameter(0), @[{'a'}, {'b'}]\n"
      "ROOT c = f32[8,16] custom-call(x), custom_call_target=\"Sharding\", "
      "@[{?}, {?}]+, replicated={'b'}+\n");
  EXPECT_EQ(p.Of("c"), "[{\"a\"}, {}]");
}

TEST(Propagation, ParametersThatMayNotBeSetStayReplicated) {
  const Propagated p = PropagateModule(
      EntryModule("x = f32[8] parameter(0)\n"
                  "w = f32[8] parameter(1), @[{'a'}]\n"
                  "ROOT y = f32[8] add(x, w)\n",
                  "num_partitions=8, allow_spmd_sharding_propagation_to_output={true}"));
  EXPECT_EQ(p.Of("x"), "[{}]");
  EXPECT_EQ(p.Of("y"), "[{\"a\"}]");
}

TEST(Propagation, ResultsThatMayNotBeSetAreGivenReplicated) {
  const Propagated p =
      PropagateModule(EntryModule("x = f32[8] parameter(0), @[{'a'}]\n"
                                  "ROOT y = f32[8] negate(x)\n",
                                  "num_partitions=8"));
  EXPECT_EQ(p.result.outputs[0]->ToString(), "[{}]");
}

// As of a value, and as of a result that Shardy's form gives by a FuncResultSharding.
TEST(Propagation, WhatIsSaidOfAResultDoesNotBindItsValue) {
  const std::string body =
      "x = f32[8,8] parameter(0), @[{'a'}, {'b'}]\n"
      "y = f32[8,8] negate(x)\n"
      "ROOT r = (f32[8,8]) tuple(y), sharding={{replicated}}\n";
  const Propagated closed = PropagateModule(EntryModule(body, "num_partitions=8"));
  EXPECT_EQ(closed.Of("y"), "[{\"a\"}, {\"b\"}]");
  EXPECT_EQ(closed.result.outputs[0]->ToString(), "[{}, {}]");
  const Propagated open = PropagateModule(EntryModule(body, kOpen));
  EXPECT_EQ(open.result.outputs[0]->ToString(), "[{\"a\"}, {\"b\"}]");
}

TEST(Propagation, AResultThatMayBeSetHasAtLeastTheAxesOfItsAnnotation) {
  const Propagated p = PropagateEntry(
      "x = f32[8,8] parameter(0), @[{?}, {'b'}]\n"
      "y = f32[8,8] negate(x)\n"
      "ROOT r = (f32[8,8]) tuple(y), sharding={{mesh['a'=4,'b'=2], [{'a'}, {}]}}\n");
  EXPECT_EQ(p.result.outputs[0]->ToString(), "[{\"a\"}, {\"b\"}]");
}

TEST(Propagation, ReshapesSplitAndJoinAxes) {
  const Propagated p = PropagateEntry(
      "x = f32[8] parameter(0), @[{'a'}]\n"
      "y = f32[2,4] reshape(x)\n"
      "z = f32[8] reshape(y)\n"
      "ROOT t = f32[8] negate(z)\n");
  EXPECT_EQ(p.Of("y"), "[{\"a\":(1)2}, {\"a\":(2)2}]");
  EXPECT_EQ(p.Of("t"), "[{\"a\"}]");
}

TEST(Propagation, UnevenConstraintsPassOn) {
  const Propagated p = PropagateEntry(
      "x = f32[3,16] parameter(0), @[{'a'}, {}]\n"
      "ROOT y = f32[3,16] tanh(x)\n");
  EXPECT_EQ(p.Of("y"), "[{\"a\"}, {}]");
}

TEST(Propagation, AShortDimensionDoesNotTakeMoreShardsThanElements) {
  const Propagated p = PropagateEntry(
      "x = f32[8] parameter(0), @[{'a'}]\n"
      "ROOT y = f32[2] slice(x), slice={[0:2]}\n");
  EXPECT_EQ(p.Of("y"), "[{}]");
}

TEST(Propagation, ElementwiseNeighboursWinOverContractions) {
  // Weights sharded along the contraction must not take the batch's axis away.
  const Propagated p = PropagateEntry(
      "x = f32[8,16] parameter(0)\n"
      "w = f32[16,32] parameter(1), @[{'a'}, {'b'}]\n"
      "h = f32[8,16] tanh(x)\n"
      "c = f32[8,16] custom-call(h), custom_call_target=\"Sharding\", @[{'a'}, {}]\n"
      "ROOT y = f32[8,32] dot(c, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n");
  EXPECT_EQ(p.Of("x"), "[{\"a\"}, {}]");
  EXPECT_EQ(p.Of("y"), "[{\"a\"}, {\"b\"}]");
}

TEST(Propagation, TheLargerSourceWinsAConflict) {
  const Propagated p = PropagateEntry(
      "x = f32[8,16] parameter(0), @[{'a'}, {}]\n"
      "w = f32[16,64] parameter(1), @[{}, {'a'}]\n"
      "ROOT y = f32[8,64] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n");
  EXPECT_EQ(p.Of("y"), "[{}, {\"a\"}]");
}

TEST(Propagation, LoopsCarryShardingsInAndOut) {
  const Propagated p = PropagateModule(absl::StrCat("HloModule loop, ", kOpen, R"(

body {
  s = (s32[], f32[8,16]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  v = f32[8,16] get-tuple-element(s), index=1
  one = s32[] constant(1)
  next = s32[] add(i, one)
  u = f32[8,16] tanh(v)
  ROOT t = (s32[], f32[8,16]) tuple(next, u)
}

condition {
  cs = (s32[], f32[8,16]) parameter(0)
  ci = s32[] get-tuple-element(cs), index=0
  ten = s32[] constant(10)
  ROOT lt = pred[] compare(ci, ten), direction=LT
}

ENTRY main {
  x = f32[8,16] parameter(0), @[{'a'}, {}]
  zero = s32[] constant(0)
  init = (s32[], f32[8,16]) tuple(zero, x)
  loop = (s32[], f32[8,16]) while(init), condition=condition, body=body
  r = f32[8,16] get-tuple-element(loop), index=1
  c = f32[8,16] custom-call(r), custom_call_target="Sharding", @[{?}, {'b'}]
  ROOT out = f32[8,16] negate(c)
}
)"));
  EXPECT_EQ(p.Of("loop", 1), "[{\"a\"}, {\"b\"}]");
  EXPECT_EQ(p.Of("u"), "[{\"a\"}, {\"b\"}]");
  EXPECT_EQ(p.Of("out"), "[{\"a\"}, {\"b\"}]");
}

// A loop that begins with the value `begin`, where x is `start`, adds `other`, and yields the sum
// under a constraint.
Propagated PropagateLoop(absl::string_view start, absl::string_view other,
                         absl::string_view yielded, absl::string_view begin = "x") {
  return PropagateModule(absl::StrReplaceAll(R"(HloModule loop, OPEN

body {
  s = (f32[8,16], f32[8,16]) parameter(0)
  v = f32[8,16] get-tuple-element(s), index=0
  w = f32[8,16] get-tuple-element(s), index=1
  u = f32[8,16] add(v, w)
  c = f32[8,16] custom-call(u), custom_call_target="Sharding", YIELDED
  ROOT t = (f32[8,16], f32[8,16]) tuple(c, w)
}

condition {
  cs = (f32[8,16], f32[8,16]) parameter(0)
  ROOT yes = pred[] constant(true)
}

ENTRY main {
  x = f32[8,16] parameter(0), START
  y = f32[8,16] parameter(1), OTHER
  one = f32[] constant(1)
  ones = f32[8,16] broadcast(one), dimensions={}
  changed = f32[8,16] negate(x)
  init = (f32[8,16], f32[8,16]) tuple(BEGIN, y)
  loop = (f32[8,16], f32[8,16]) while(init), condition=condition, body=body
  ROOT out = f32[8,16] get-tuple-element(loop), index=0
}
)",
                                             {{"OPEN", kOpen},
                                              {"START", start},
                                              {"OTHER", other},
                                              {"YIELDED", yielded},
                                              {"BEGIN", begin}}));
}

TEST(Propagation, WhatALoopYieldsUnderAConstraintIsCarriedSo) {
  const char *kWhole = "@[{}, {}]", *kRows = "@[{'a'}, {}]", *kColumns = "@[{}, {'a'}]";
  EXPECT_EQ(PropagateLoop(kWhole, kRows, kWhole).Of("loop"), "[{}, {}]");
  EXPECT_EQ(PropagateLoop(kRows, kRows, kWhole, "ones").Of("loop"), "[{}, {}]");
  EXPECT_EQ(PropagateLoop(kWhole, kRows, "@[{?}, {}]").Of("loop"), "[{\"a\"}, {}]");
  const Propagated columns = PropagateLoop(kRows, kRows, kColumns);
  EXPECT_EQ(columns.Of("loop"), "[{}, {\"a\"}]");
  EXPECT_EQ(columns.Explain("loop"), "constraint at %c -> %loop %c -> result 0");
}

TEST(Propagation, WhatALoopBeginsWithIsNotGatheredForAConstraintWithoutAxes) {
  const char *kWhole = "@[{}, {}]", *kRows = "@[{'a'}, {}]", *kColumns = "@[{}, {'b'}]";
  for (const char* begin : {"x", "changed"}) {
    SCOPED_TRACE(begin);
    EXPECT_EQ(PropagateLoop(kRows, kRows, kWhole, begin).Of("loop"), "[{\"a\"}, {}]");
    EXPECT_EQ(PropagateLoop(kRows, kRows, kColumns, begin).Of("loop"), "[{\"a\"}, {\"b\"}]");
  }
}

TEST(Propagation, BranchesAndCallsAreLinked) {
  const Propagated p = PropagateModule(absl::StrCat("HloModule branches, ", kOpen, R"(

yes {
  py = f32[8] parameter(0)
  ROOT ry = f32[8] tanh(py)
}

no {
  pn = f32[8] parameter(0)
  ROOT rn = f32[8] negate(pn)
}

ENTRY main {
  q = pred[] parameter(0)
  x = f32[8] parameter(1), @[{'a'}]
  y = f32[8] parameter(2)
  ROOT r = f32[8] conditional(q, x, y), true_computation=yes, false_computation=no
}
)"));
  EXPECT_EQ(p.Of("ry"), "[{\"a\"}]");
  EXPECT_EQ(p.Of("r"), "[{\"a\"}]");
  EXPECT_EQ(p.Of("rn"), "[{\"a\"}]");
  EXPECT_EQ(p.Of("y"), "[{\"a\"}]");
}

// A switch of three branches that end with annotations, and a user of its result.
Propagated PropagateSwitch(absl::string_view first, absl::string_view second,
                           absl::string_view third, absl::string_view own = "",
                           absl::string_view user = "negate(r)", absl::string_view header = kOpen) {
  return PropagateModule(absl::StrReplaceAll(R"(HloModule branches, OPEN

b0 { x0 = f32[8,16] parameter(0)
  ROOT r0 = f32[8,16] custom-call(x0), custom_call_target="Sharding", FIRST }
b1 { x1 = f32[8,16] parameter(0)
  ROOT r1 = f32[8,16] custom-call(x1), custom_call_target="Sharding", SECOND }
b2 { x2 = f32[8,16] parameter(0)
  ROOT r2 = f32[8,16] custom-call(x2), custom_call_target="Sharding", THIRD }

ENTRY main {
  k = s32[] parameter(0)
  x = f32[8,16] parameter(1)
  r = f32[8,16] conditional(k, x, x, x), branch_computations={b0, b1, b2}OWN
  ROOT out = f32[8,16] USER
}
)",
                                             {{"OPEN", header},
                                              {"FIRST", first},
                                              {"SECOND", second},
                                              {"THIRD", third},
                                              {"OWN", own},
                                              {"USER", user}}));
}

constexpr char kRows[] = "@[{'a'}, {}]", kColumns[] = "@[{}, {'a'}]", kOther[] = "@[{}, {'b'}]";

TEST(Propagation, AConditionalTakesTheShardingThatMostBranchesEndWith) {
  const Propagated p = PropagateSwitch(kRows, kColumns, kColumns);
  EXPECT_EQ(p.Of("r"), "[{}, {\"a\"}]");
  EXPECT_EQ(p.Of("r0"), "[{\"a\"}, {}]");  // resharded where the branch ends
  EXPECT_EQ(p.Explain("r"), "constraint at %r1 -> %r %r1 -> result");
  EXPECT_EQ(PropagateSwitch(kColumns, kRows, kRows).Of("r"), "[{\"a\"}, {}]");
}

TEST(Propagation, AConditionalTakesAShardingThatAllBranchesCanBeCutTo) {
  EXPECT_EQ(PropagateSwitch(kRows, kOther, kOther).Of("r"), "[{\"a\"}, {\"b\"}]");
}

TEST(Propagation, AConditionalsOwnAnnotationWins) {
  const Propagated p = PropagateSwitch(kRows, kColumns, kColumns, absl::StrCat(", ", kRows));
  EXPECT_EQ(p.Of("r"), "[{\"a\"}, {}]");
}

TEST(Propagation, TheUsersOfAConditionalCountWithItsBranches) {
  const std::string rows = absl::StrCat("custom-call(r), custom_call_target=\"Sharding\", ", kRows);
  EXPECT_EQ(PropagateSwitch(kRows, kColumns, kColumns, "", rows).Of("r"), "[{\"a\"}, {}]");
}

TEST(Propagation, AConditionalThatEndsAProgramWholeIsWhole) {
  const char* end = R"(
t { a = f32[8,16] parameter(0)
  ROOT s = f32[8,16] custom-call(a), custom_call_target="Sharding", @[{'a'}, {}] }
f { b = f32[8,16] parameter(0)
  ROOT u = f32[8,16] custom-call(b), custom_call_target="Sharding", @[{}, {'a'}] }

ENTRY main {
  p = pred[] parameter(0)
  x = f32[8,16] parameter(1)
  ROOT y = f32[8,16] conditional(p, x, x), true_computation=t, false_computation=f
}
)";
  const Propagated p = PropagateModule(absl::StrCat("HloModule whole, num_partitions=8\n", end));
  EXPECT_EQ(p.Of("y"), "[{}, {}]");
  EXPECT_EQ(p.result.outputs[0]->ToString(), "[{}, {}]");
  // Where the result may be set, one of the branches need not be resharded.
  const Propagated open = PropagateModule(absl::StrCat("HloModule open, ", kOpen, "\n", end));
  EXPECT_EQ(open.Of("y"), "[{\"a\"}, {}]");
}

TEST(Propagation, UnreducedConstraintsArePartial) {
  const Propagated p = PropagateEntry(
      "x = f32[8,16] parameter(0), @[{?}, {'a'}]\n"
      "w = f32[16,4] parameter(1), @[{'a'}, {?}]\n"
      "y = f32[8,4] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
      "c = f32[8,4] custom-call(y), custom_call_target=\"Sharding\", @[{?}, {?}]+, "
      "unreduced={'a'}+\n"
      "ROOT d = f32[8,4] custom-call(c), custom_call_target=\"Sharding\", @[{}, {}]\n");
  EXPECT_EQ(p.Of("c"), "[{}, {}] partial=add{\"a\"}");
}

TEST(Propagation, OneConstantDoesNotTieItsUsersTogether) {
  const Propagated p = PropagateEntry(
      "x = f32[8] parameter(0), @[{'a'}]\n"
      "y = f32[8] parameter(1)\n"
      "z = f32[] constant(1)\n"
      "k = f32[8] broadcast(z), dimensions={}\n"
      "u = f32[8] add(x, k)\n"
      "v = f32[8] multiply(y, k)\n"
      "ROOT t = (f32[8], f32[8]) tuple(u, v)\n");
  EXPECT_EQ(p.Of("u"), "[{\"a\"}]");
  EXPECT_EQ(p.Of("v"), "[{}]");
}

TEST(Propagation, RulesOfCustomCallsWorkBothWays) {
  TargetRegistry targets;
  ASSERT_TRUE(RegisterBuiltinTargets(targets).ok());
  const Propagated p = PropagateEntry(
      "x = f32[8,4,16] parameter(0), @[{'a'}, {'b'}, {}]\n"
      "g = f32[16] parameter(1), @[{}]\n"
      "n = (f32[8,4,16], f32[8,4]) custom-call(x, g), custom_call_target=\"rms_norm\"\n"
      "y = f32[8,4,16] get-tuple-element(n), index=0\n"
      "r = f32[8,4] get-tuple-element(n), index=1\n"
      "ROOT t = (f32[8,4,16], f32[8,4]) tuple(y, r)\n",
      &targets);
  EXPECT_EQ(p.Of("y"), "[{\"a\"}, {\"b\"}, {}]");
  EXPECT_EQ(p.Of("r"), "[{\"a\"}, {\"b\"}]");
}

TEST(Propagation, BarriersStopIt) {
  const auto of = [](const std::string& target) {
    const std::string call = absl::StrCat(" custom-call(x), custom_call_target=\"", target, "\"");
    const Propagated ahead = PropagateEntry(
        absl::StrCat("x = f32[8] parameter(0), @[{'a'}]\nROOT y = f32[8]", call, "\n"));
    const Propagated back = PropagateEntry(absl::StrCat(
        "x = f32[8] parameter(0)\nb = f32[8]", call, "\n",
        "ROOT y = f32[8] custom-call(b), custom_call_target=\"Sharding\", @[{'a'}]\n"));
    return absl::StrCat(ahead.Of("y"), " ", back.Of("x"));
  };
  EXPECT_EQ(of("MoveToHost"), "[{\"a\"}] [{\"a\"}]");
  EXPECT_EQ(of("PinToDevice"), "[{\"a\"}] [{\"a\"}]");
  EXPECT_EQ(of("ShardBarrierFrom"), "[{}] [{\"a\"}]");
  EXPECT_EQ(of("ShardBarrierTo"), "[{}] [{}]");
}

TEST(Propagation, UnknownCallsPassNothing) {
  const Propagated p = PropagateEntry(
      "x = f32[8] parameter(0), @[{'a'}]\n"
      "ROOT y = f32[8] custom-call(x), custom_call_target=\"who_knows\"\n");
  EXPECT_EQ(p.Of("y"), "[{}]");
}

// Results follow operand 0; a user may shard dimension 0 only.
PartitionerCallbacks FollowFirst() {
  PartitionerCallbacks c;
  c.infer_sharding_from_operands = [](const CustomCallView& call,
                                      absl::Span<const Sharding* const> operands)
      -> absl::StatusOr<std::vector<const Sharding*>> {
    return std::vector<const Sharding*>(call.results.size(), operands[0]);
  };
  c.propagate_user_sharding = [](const CustomCallView& call, int,
                                 const Sharding* user) -> absl::StatusOr<const Sharding*> {
    ShardingBuilder b(*user);
    for (size_t d = 1; d < b.dims.size(); ++d) b.dims[d].clear();
    return b.Intern(*call.context);
  };
  return c;
}

TEST(Propagation, CallbacksInferForwards) {
  TargetRegistry targets;
  ASSERT_TRUE(targets.RegisterCustomCallPartitioner("mine", FollowFirst()).ok());
  const Propagated p = PropagateEntry(
      "x = f32[8,16] parameter(0), @[{'a'}, {'b'}]\n"
      "y = f32[8,16] custom-call(x), custom_call_target=\"mine\"\n"
      "ROOT z = f32[8,16] negate(y)\n",
      &targets);
  EXPECT_EQ(p.Of("y"), "[{\"a\"}, {\"b\"}]");
  EXPECT_EQ(p.Of("z"), "[{\"a\"}, {\"b\"}]");
}

TEST(Propagation, CallbacksAreAskedBeforeAUsersWishReachesAResult) {
  TargetRegistry targets;
  ASSERT_TRUE(targets.RegisterCustomCallPartitioner("mine", FollowFirst()).ok());
  const Propagated p = PropagateEntry(
      "x = f32[8,16] parameter(0)\n"
      "y = f32[8,16] custom-call(x), custom_call_target=\"mine\"\n"
      "ROOT z = f32[8,16] custom-call(y), custom_call_target=\"Sharding\", @[{'a'}, {'b'}]\n",
      &targets);
  EXPECT_EQ(p.Of("y"), "[{\"a\"}, {}]");
  EXPECT_EQ(p.Of("x"), "[{}, {}]");
}

TEST(Propagation, NullCallbacksAreLeftAlone) {
  TargetRegistry targets;
  ASSERT_TRUE(targets.RegisterCustomCallPartitioner("mine", {}).ok());
  const Propagated p = PropagateEntry(
      "x = f32[8,16] parameter(0), @[{'a'}, {}]\n"
      "y = f32[8,16] custom-call(x), custom_call_target=\"mine\"\n"
      "ROOT z = f32[8,16] custom-call(y), custom_call_target=\"Sharding\", @[{'a'}, {'b'}]\n",
      &targets);
  EXPECT_EQ(p.Of("y"), "[{}, {}]");
}

absl::Status PropagateStatus(const PartitionerCallbacks& callbacks) {
  TargetRegistry targets;
  EXPECT_TRUE(targets.RegisterCustomCallPartitioner("mine", callbacks).ok());
  Program program =
      Import(Expand(EntryModule("x = f32[8] parameter(0), @[{'a'}]\n"
                                "ROOT y = f32[8] custom-call(x), custom_call_target=\"mine\"\n",
                                kOpen)));
  RuleTable rules(program, {.targets = &targets});
  return Propagate(program, rules, {}).status();
}

TEST(Propagation, ACallbackThatFailsOrThrowsIsAnErrorWithItsName) {
  PartitionerCallbacks fails, throws, short_answer;
  fails.infer_sharding_from_operands =
      [](const CustomCallView&,
         absl::Span<const Sharding* const>) -> absl::StatusOr<std::vector<const Sharding*>> {
    return absl::UnimplementedError("not today");
  };
  throws.infer_sharding_from_operands = [](const CustomCallView&, absl::Span<const Sharding* const>)
      -> absl::StatusOr<std::vector<const Sharding*>> { throw std::runtime_error("boom"); };
  short_answer.infer_sharding_from_operands =
      [](const CustomCallView&,
         absl::Span<const Sharding* const>) -> absl::StatusOr<std::vector<const Sharding*>> {
    return std::vector<const Sharding*>();
  };
  EXPECT_THAT(std::string(PropagateStatus(fails).message()),
              testing::AllOf(HasSubstr("E121"), HasSubstr("mine"), HasSubstr("%y"),
                             HasSubstr("not today")));
  EXPECT_EQ(PropagateStatus(fails).code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(PropagateStatus(throws).message()), HasSubstr("boom"));
  EXPECT_THAT(std::string(PropagateStatus(short_answer).message()), HasSubstr("0 shardings"));
}

constexpr char kGroup[] =
    "x = f32[8,16] parameter(0), "
    "frontend_attributes={xla.sdy.sharding=\"#sdy.sharding<@mesh, [{\\\"a\\\"}, {}]>\"}\n"
    "y = f32[8,16] parameter(1)\n"
    "u = f32[8,16] tanh(x)\n"
    "v = f32[8,16] negate(y)\n"
    "g = () custom-call(u), custom_call_target=\"xla.sdy.ShardingGroup\", "
    "custom_call_has_side_effect=true, "
    "frontend_attributes={xla.sdy.sharding_group_id=\"0 : i64\"}\n"
    "h = () custom-call(v), custom_call_target=\"xla.sdy.ShardingGroup\", "
    "custom_call_has_side_effect=true, "
    "frontend_attributes={xla.sdy.sharding_group_id=\"0 : i64\"}\n"
    "ROOT t = (f32[8,16], f32[8,16]) tuple(u, v)\n";

TEST(Propagation, MembersOfAGroupAreShardedAlike) {
  const Propagated p = PropagateModule(
      EntryModule(kGroup, absl::StrCat(kOpen,
                                       ", frontend_attributes={xla.sdy.meshes={mesh = "
                                       "#sdy.mesh<[\"a\"=4, \"b\"=2]>}}")));
  EXPECT_EQ(p.Of("u"), "[{\"a\"}, {}]");
  EXPECT_EQ(p.Of("v"), "[{\"a\"}, {}]");
  EXPECT_EQ(p.Of("y"), "[{\"a\"}, {}]");
}

// A region that is manual over "a"; "b" stays free and passes through it.
TEST(Propagation, FreeAxesPassThroughManualRegions) {
  const std::string text =
      R"(HloModule manual_region, HEADER, frontend_attributes={xla.sdy.meshes={mesh = #sdy.mesh<["a"=4, "b"=2]>}}

xla.sdy.manual_computation_body.1 {
  l = f32[2,16] parameter(0)
  ROOT m = f32[2,16] tanh(l)
}

ENTRY main {
  x = f32[8,16] parameter(0), frontend_attributes={xla.sdy.sharding="#sdy.sharding<@mesh, [{?}, {\"b\"}]>"}
  g = f32[2,16] custom-call(x), custom_call_target="xla.sdy.GlobalToLocalShape", custom_call_has_side_effect=true, frontend_attributes={xla.sdy.in_shardings="#sdy.sharding_per_value<[<@mesh, [{\"a\"}, {?}]>]>",xla.sdy.manual_axes="#sdy<manual_axes{\"a\"}>"}
  c = f32[2,16] call(g), to_apply=xla.sdy.manual_computation_body.1, frontend_attributes={inlineable="false"}
  y = f32[8,16] custom-call(c), custom_call_target="xla.sdy.LocalToGlobalShape", custom_call_has_side_effect=true, frontend_attributes={xla.sdy.manual_axes="#sdy<manual_axes{\"a\"}>",xla.sdy.out_shardings="#sdy.sharding_per_value<[<@mesh, [{\"a\"}, {?}]>]>"}
  ROOT z = f32[8,16] negate(y)
}
)";
  const Propagated p = PropagateModule(absl::StrReplaceAll(text, {{"HEADER", kOpen}}));
  EXPECT_EQ(p.Of("x"), "[{\"a\"}, {\"b\"}]");
  EXPECT_EQ(p.Of("g"), "[{}, {\"b\"}] manual={\"a\"}");
  EXPECT_EQ(p.Of("m"), "[{}, {\"b\"}] manual={\"a\"}");
  EXPECT_EQ(p.Of("z"), "[{\"a\"}, {\"b\"}]");
}

TEST(Propagation, DoesNotDependOnTheOrderOfTheText) {
  const std::string lines[] = {
      "x = f32[8,16] parameter(0), @[{'a'}, {}]\n", "w = f32[16,8] parameter(1), @[{}, {'a'}]\n",
      "v = f32[16,8] parameter(2), @[{'b'}, {}]\n",
      "d = f32[8,8] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n",
      "e = f32[8,8] dot(x, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"};
  const std::string tail =
      "s = f32[8,8] add(d, e)\n"
      "r = f32[8,8] transpose(s), dimensions={1,0}\n"
      "ROOT t = f32[8,8] multiply(r, s)\n";
  const Propagated p = PropagateEntry(lines[0] + lines[1] + lines[2] + lines[3] + lines[4] + tail);
  const Propagated q = PropagateEntry(lines[2] + lines[1] + lines[0] + lines[4] + lines[3] + tail);
  for (const char* name : {"x", "w", "v", "d", "e", "s", "r", "t"}) {
    EXPECT_EQ(p.Of(name), q.Of(name)) << name;
  }
}

TEST(Propagation, AValueOnOneDeviceGivesAndTakesNothing) {
  const Propagated p = PropagateEntry(
      "x = f32[8] parameter(0), @[{'a'}]\n"
      "c = f32[8] custom-call(x), custom_call_target=\"Sharding\", sharding={maximal device=0}\n"
      "ROOT y = f32[8] negate(c)\n");
  EXPECT_EQ(p.Of("c"), "{maximal device=0}");
  EXPECT_EQ(p.Of("y"), "[{}]");
}

}  // namespace
}  // namespace shardcall
