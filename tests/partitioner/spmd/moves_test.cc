// SPDX-License-Identifier: Apache-2.0
// What a plan moves: values that were moved once serve later users, gathers that nobody
// asked for are listed, and there may be a limit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "absl/strings/str_cat.h"
#include "tests/partitioner/spmd/plan_testing.h"
#include "tests/support/test_targets.h"

namespace shardcall {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

// The scan along the rows wants x whole. Without that gather each of the others would
// run on its shard and gather what it makes, which is as many bytes and less work.
TEST(PlanChoice, AReshardedOperandIsSharedByItsUsers) {
  TextOptions options{.targets = &TestTargets(), .spmd = {.cost = {.memory_rate = 1e15}}};
  const std::string text = R"(
  x = s32[64,64] parameter(0), sharding={devices=[1,4]<=[4]}
  w = s32[64,64] custom-call(x), custom_call_target="test_row_scan"
  a = s32[64,64] negate(x), sharding={replicated}
  b = s32[64,64] abs(x), sharding={replicated}
  ROOT s = (s32[64,64], s32[64,64], s32[64,64]) tuple(w, a, b)
)";
  const auto p = Done(text, 4, options);
  EXPECT_EQ(CountOpcode(*p, Opcode::kAllGather), 1) << LocalText(*p);
  EXPECT_THAT(p->plan.gathers, IsEmpty());
  options.handlers = &TestHandlers();
  EXPECT_EQ(WhyNotEqual(Instantiate(text, {}, TestMesh{{4}}, {}), options), "");
}

// Gathered whole, x was in the states between. What is cut of the whole sends nothing.
TEST(PlanChoice, StatesOnTheWayOfAReshardServeLaterUsers) {
  const std::string text = R"(
  x = s32[8,8] parameter(0), sharding={devices=[2,2]<=[4]}
  whole = s32[8,8] custom-call(x), custom_call_target="Sharding", sharding={replicated}
  rows = s32[8,8] custom-call(x), custom_call_target="Sharding", sharding={devices=[2,1,2]<=[4] last_tile_dim_replicate}
  columns = s32[8,8] custom-call(x), custom_call_target="Sharding", sharding={devices=[1,2,2]<=[2,2]T(1,0) last_tile_dim_replicate}
  turned = s32[8,8] custom-call(x), custom_call_target="Sharding", sharding={devices=[4,1]<=[2,2]T(1,0)}
  again = s32[8,8] custom-call(columns), custom_call_target="Sharding", sharding={replicated}
  ROOT t = (s32[8,8], s32[8,8], s32[8,8], s32[8,8], s32[8,8]) tuple(whole, rows, columns, turned, again), sharding={{replicated}, {devices=[2,1,2]<=[4] last_tile_dim_replicate}, {devices=[1,2,2]<=[2,2]T(1,0) last_tile_dim_replicate}, {devices=[4,1]<=[2,2]T(1,0)}, {replicated}}
)";
  const auto p = Done(text, 4);
  EXPECT_THAT(p->local.collectives, SizeIs(2)) << LocalText(*p);
  EXPECT_EQ(WhyNotEqual(Instantiate(text, {}, TestMesh{{4}}, {}), {}), "");
}

// The shards of x are at hand, so nothing has to be gathered to make shards of y.
TEST(PlanChoice, AnAnnotatedValueIsItsOperandStill) {
  const std::string text = R"(
  x = s32[8] parameter(0), sharding={devices=[4]<=[4]}
  whole = s32[8] custom-call(x), custom_call_target="Sharding", sharding={replicated}
  y = s32[8] negate(whole)
  ROOT r = s32[8] custom-call(y), custom_call_target="Sharding", sharding={devices=[4]<=[4]}
)";
  const auto p = Done(text, 4);
  EXPECT_THAT(p->local.collectives, IsEmpty()) << LocalText(*p);
  EXPECT_EQ(WhyNotEqual(Instantiate(text, {}, TestMesh{{4}}, {}), {}), "");
}

// A copy that was made before a barrier is not what comes out of it.
TEST(PlanChoice, CopiesDoNotPassBarriersAndComputations) {
  const std::string text = R"(
  x = s32[8,8] parameter(0), sharding={devices=[4,1]<=[4]}
  w = s32[8,8] custom-call(x), custom_call_target="Sharding", sharding={replicated}
  o = s32[8,8] opt-barrier(x)
  v = s32[8,8] custom-call(o), custom_call_target="Sharding", sharding={replicated}
  ROOT t = (s32[8,8], s32[8,8]) tuple(w, v)
)";
  const auto p = Done(text, 4);
  EXPECT_EQ(CountOpcode(*p, Opcode::kAllGather), 2) << LocalText(*p);
  const std::string loop = R"(
step {
  p = (s32[], s32[8,8]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  one = s32[] constant(1)
  next = s32[] add(i, one)
  v = s32[8,8] get-tuple-element(p), index=1
  whole = s32[8,8] custom-call(v), custom_call_target="Sharding", sharding={replicated}
  turned = s32[8,8] reverse(whole), dimensions={0}
  sum = s32[8,8] add(turned, whole)
  cut = s32[8,8] custom-call(sum), custom_call_target="Sharding", sharding={devices=[4,1]<=[4]}
  ROOT r = (s32[], s32[8,8]) tuple(next, cut)
}
more {
  p = (s32[], s32[8,8]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(3)
  ROOT lt = pred[] compare(i, n), direction=LT
}
ENTRY main {
  x = s32[8,8] parameter(0), sharding={devices=[4,1]<=[4]}
  before = s32[8,8] custom-call(x), custom_call_target="Sharding", sharding={replicated}
  zero = s32[] constant(0)
  init = (s32[], s32[8,8]) tuple(zero, x)
  loop = (s32[], s32[8,8]) while(init), condition=more, body=step
  y = s32[8,8] get-tuple-element(loop), index=1
  after = s32[8,8] custom-call(y), custom_call_target="Sharding", sharding={replicated}
  ROOT t = (s32[8,8], s32[8,8]) tuple(before, after)
}
)";
  EXPECT_EQ(WhyNotEqual(Instantiate(loop, {}, TestMesh{{4}}, {}), {}), "");
}

std::vector<std::string> GathersOf(const PartitionedProgram& p) {
  std::vector<std::string> out;
  for (const auto& [instr, g] : p.plan.gathers) {
    out.push_back(absl::StrCat(p.global->program.module.instr(instr).name, " ", g.index, " ",
                               GatherKindName(g.kind), " ", g.from->ToString(), " ",
                               g.to->ToString(), " ", g.bytes));
  }
  return out;
}

TEST(Gathers, AreListedWithWhyWhereNobodyAskedForThem) {
  const auto p = Done(R"(
less {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = pred[] compare(a, b), direction=LT
}

ENTRY main {
  x = f32[8,8] parameter(0), sharding={devices=[4,1]<=[4]}
  y = f32[8,8] parameter(1), sharding={devices=[1,4]<=[4]}
  z = f32[8,8] parameter(2), sharding={replicated}
  both = f32[8,8] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}, sharding={devices=[4,1]<=[4]}
  sorted = f32[8,8] sort(y), dimensions={1}, to_apply=less
  made = f32[8,8] sort(z), dimensions={1}, to_apply=less, sharding={devices=[1,4]<=[4]}
  asked = f32[8,8] custom-call(x), custom_call_target="Sharding", sharding={replicated}
  kept = f32[8,8] custom-call(x), custom_call_target="keeps"
  ROOT t = (f32[8,8], f32[8,8], f32[8,8], f32[8,8], f32[8,8]) tuple(both, sorted, made, asked, kept)
}
)",
                      4, {.targets = [] {
                        static TargetRegistry* const kKeeps = new TargetRegistry;
                        EXPECT_TRUE(kKeeps->RegisterBatchPartitionable("keeps", 0).ok());
                        return kKeeps;
                      }()});
  EXPECT_THAT(GathersOf(*p), testing::ElementsAre("both 1 cost [{}, {\"x0\"}] [{}, {}] 192",
                                                  "made 0 whole [{}, {}] [{}, {\"x0\"}] 0"));
  EXPECT_THAT(p->plan.fallbacks, testing::IsEmpty());  // sorted: y is at hand
}

TEST(Gathers, ALoopThatTakesItsValuesWholeIsNamed) {
  const auto p = Done(R"(
step {
  p = (s32[], f32[8,8]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  one = s32[] constant(1)
  next = s32[] add(i, one)
  v = f32[8,8] get-tuple-element(p), index=1
  s = f32[8,8] negate(v)
  ROOT r = (s32[], f32[8,8]) tuple(next, s)
}
more {
  p = (s32[], f32[8,8]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(3)
  ROOT lt = pred[] compare(i, n), direction=LT
}
ENTRY main {
  x = f32[8,8] parameter(0), sharding={devices=[4,1]<=[4]}
  zero = s32[] constant(0)
  init = (s32[], f32[8,8]) tuple(zero, x)
  loop = (s32[], f32[8,8]) while(init), condition=more, body=step, sharding={{replicated}, {replicated}}
  ROOT y = f32[8,8] get-tuple-element(loop), index=1
}
)",
                      4);
  EXPECT_THAT(GathersOf(*p), testing::ElementsAre("loop 1 state [{\"x0\"}, {}] [{}, {}] 192"));
}

TEST(ReshardLimit, TooLargeAReshardIsRefused) {
  const std::string text = R"(
  x = f32[64,64] parameter(0), sharding={devices=[4,1]<=[4]}
  ROOT y = f32[64,64] custom-call(x), custom_call_target="Sharding", sharding={replicated}
)";
  EXPECT_THAT(Refused(text, 4, {.spmd = {.max_reshard_bytes = 1000}}),
              Fails("E210", "a reshard of %x"));
  EXPECT_TRUE(Refused(text, 4, {.spmd = {.max_reshard_bytes = 1 << 20}}).ok());
}

TEST(ReshardLimit, HoldsForResultsOutputsAndLoops) {
  const std::string result = R"(
  x = f32[64,64] parameter(0), sharding={devices=[1,4]<=[4]}
  w = f32[64,64] parameter(1), sharding={devices=[4,1]<=[4]}
  ROOT d = f32[64,64] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}, sharding={replicated}
)";
  EXPECT_THAT(Refused(result, 4, {.spmd = {.max_reshard_bytes = 1000}}),
              Fails("E210", "a reshard of result 0 of %d from [{}, {}] partial=add{\"x0\"}"));
  EXPECT_TRUE(Refused(result, 4, {.spmd = {.max_reshard_bytes = 1 << 20}}).ok());
  const std::string output = R"(
  x = f32[64,64] parameter(0), sharding={devices=[4,1]<=[4]}
  ROOT t = (f32[64,64], f32[64,64]) tuple(x, x), sharding={{devices=[4,1]<=[4]}, {replicated}}
)";
  EXPECT_THAT(Refused(output, 4, {.spmd = {.max_reshard_bytes = 1000}}),
              Fails("E210", "a reshard of %x from [{\"x0\"}, {}] to [{}, {}] for "));
  EXPECT_TRUE(Refused(output, 4, {.spmd = {.max_reshard_bytes = 1 << 20}}).ok());
}

TEST(ReshardLimit, HoldsForWhatPartitionCallbacksReshard) {
  TargetRegistry targets;
  PartitionerCallbacks callbacks;
  callbacks.partition = [](PartitionContext& c) -> absl::Status {
    const Sharding* cut = c.operand_sharding(0);
    const Sharding* whole = c.call().Replicated(2);
    const Shape* shape = c.call().operands[0];
    absl::StatusOr<LocalValue> x = c.Operand(0, cut);
    if (x.ok()) x = c.Reshard(*x, shape, cut, whole);
    return x.ok() ? c.SetResult(0, *x, whole) : x.status();
  };
  ASSERT_TRUE(targets.RegisterCustomCallPartitioner("mine", callbacks).ok());
  const std::string text = R"(
  x = f32[64,64] parameter(0), sharding={devices=[4,1]<=[4]}
  ROOT c = f32[64,64] custom-call(x), custom_call_target="mine", sharding={replicated}
)";
  EXPECT_THAT(Refused(text, 4, {.targets = &targets, .spmd = {.max_reshard_bytes = 1000}}),
              Fails("E210", "a reshard of a value within %c from [{\"x0\"}, {}]"));
  EXPECT_TRUE(Refused(text, 4, {.targets = &targets, .spmd = {.max_reshard_bytes = 1 << 20}}).ok());
}

TEST(ReshardLimit, HoldsForTheBroadcastOfWhatOneDeviceComputes) {
  const std::pair<const char*, const char*> cases[] = {
      {R"(
  x = f32[64,64] parameter(0)
  ROOT y = f32[64,64] negate(x), sharding={maximal device=2}
)",
       "the broadcast of result 0 of %y from device 2 moves 24576 bytes per device"},
      {R"(
  a = f32[] constant(0)
  b = f32[] constant(1)
  ROOT u = f32[64,64] rng(a, b), distribution=rng_uniform
)",
       "the broadcast of result 0 of %u from device 0 moves 24576 bytes per device"},
      {R"(
  t = token[] after-all()
  i = ((f32[8], c64[64,32]), token[]) infeed(t), sharding={{devices=[4]<=[4]}, {maximal device=1}, {maximal device=0}}
  d = (f32[8], c64[64,32]) get-tuple-element(i), index=0
  ROOT y = c64[64,32] get-tuple-element(d), index=1
)",
       "the broadcast of result 1 of %i from device 1 moves 24576 bytes per device"}};
  for (const auto& [text, what] : cases) {
    EXPECT_THAT(Refused(text, 4, {.spmd = {.max_reshard_bytes = 24575}}), Fails("E210", what));
    EXPECT_TRUE(Refused(text, 4, {.spmd = {.max_reshard_bytes = 24576}}).ok());
  }
}

// Along a sharded dimension these ops get their tile's elements from other shards, which no reshard
// plans.
TEST(ReshardLimit, HoldsForHaloExchanges) {
  const std::string x = "  x = f32[64,64] parameter(0), sharding={devices=[4,1]<=[4]}\n";
  const std::string rows = ", sharding={devices=[4,1]<=[4]}\n";
  const std::pair<std::string, int> cases[] = {
      {"  ROOT y = f32[64,64] reverse(x), dimensions={0}", 0},
      {"  ROOT y = f32[60,64] slice(x), slice={[2:62], [0:64]}", 0},
      {"  z = f32[] constant(0)\n  ROOT y = f32[72,64] pad(x, z), padding=4_4x0_0", 0},
      {"  w = f32[8,64] parameter(1)" + rows +
           "  ROOT y = f32[72,64] concatenate(w, x), dimensions={0}",
       0}};
  for (const auto& [op, operand] : cases) {
    const std::string text = x + op + rows;
    TextOptions options;
    options.spmd.cost.latency = 1e-15;
    const auto p = Done(text, 4, options);
    double bytes = 0;
    for (const CollectiveRecord& r : p->local.collectives) {
      EXPECT_EQ(p->global->program.module.instr(r.cause.consumer).name, "y") << text;
      if (r.from == nullptr && r.cause.index == operand) bytes += r.bytes_moved;
    }
    ASSERT_GT(bytes, 0) << LocalText(*p);
    options.spmd.max_reshard_bytes = static_cast<int64_t>(std::ceil(bytes)) - 1;
    EXPECT_THAT(Refused(text, 4, options),
                Fails("E210", absl::StrCat("the halo exchange of operand ", operand,
                                           " of %y moves ", bytes, " bytes per device")));
    ++options.spmd.max_reshard_bytes;
    EXPECT_TRUE(Refused(text, 4, options).ok());
  }
}

// Only device 2 reads what device 2 computes, so nothing is sent.
TEST(ReshardLimit, IsFreeForWhatStaysOnItsDevice) {
  EXPECT_THAT(Refused(R"(
  x = f32[64,64] parameter(0)
  y = f32[64,64] negate(x), sharding={maximal device=2}
  ROOT s = f32[2,2] slice(y), slice={[0:2], [0:2]}, sharding={maximal device=2}
)",
                      4, {.spmd = {.max_reshard_bytes = 100}}),
              absl::OkStatus());
}

}  // namespace
}  // namespace shardcall
