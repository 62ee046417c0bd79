// SPDX-License-Identifier: Apache-2.0
// Loops that read and write arrays slice by slice along a sharded dimension.
#include <gtest/gtest.h>

#include "absl/strings/str_replace.h"
#include "tests/partitioner/spmd/plan_testing.h"

namespace shardcall {
namespace {

const std::vector<Sizes> kSizes = {{{'A', 8}, {'B', 4}}, {{'A', 10}, {'B', 7}}};

// What `map` over the rows of x is: row i of the result is twice row i of x.
constexpr char kMap[] = R"(
body {
  p = (s32[], f32[@A,@B], f32[@A,@B]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  xs = f32[@A,@B] get-tuple-element(p), index=1
  ys = f32[@A,@B] get-tuple-element(p), index=2
  zero = s32[] constant(0)
  row = f32[1,@B] dynamic-slice(xs, i, zero), dynamic_slice_sizes={1,@B}
  twice = f32[1,@B] add(row, row)
  out = f32[@A,@B] dynamic-update-slice(ys, twice, i, zero)
  one = s32[] constant(1)
  n = s32[] add(i, one)
  ROOT t = (s32[], f32[@A,@B], f32[@A,@B]) tuple(n, xs, out)
}

condition {
  p = (s32[], f32[@A,@B], f32[@A,@B]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(TRIPS)
  ROOT r = pred[] compare(i, n), direction=LT
}

ENTRY main {
  zero = s32[] constant(0)
  fzero = f32[] constant(0)
  xs = f32[@A,@B] parameter(0)<0:2>
  ys = f32[@A,@B] INIT
  t = (s32[], f32[@A,@B], f32[@A,@B]) tuple(zero, xs, ys)
  w = (s32[], f32[@A,@B], f32[@A,@B]) while(t), condition=condition, body=body
  out = f32[@A,@B] get-tuple-element(w), index=2
  ROOT o = f32[@A,@B] copy(out)<1:2>
}
)";

std::string Map(const std::string& trips, const std::string& init) {
  return absl::StrReplaceAll(kMap, {{"TRIPS", trips}, {"INIT", init}});
}

constexpr char kZeros[] = "broadcast(fzero), dimensions={}";
constexpr char kRows[] = ", sharding={devices=[8,1]<=[8]}";

std::unique_ptr<PartitionedProgram> Partitioned(const std::string& text, const Sizes& sizes,
                                                const std::vector<std::string>& slots,
                                                TextOptions options = {}) {
  auto p = PartitionText(Instantiate(text, sizes, TestMesh{{8}}, slots), options);
  EXPECT_TRUE(p.ok()) << p.status();
  return p.ok() ? *std::move(p) : nullptr;
}

// The bytes that a device sends in the loops, and before and after them.
struct Sent {
  double in_loops = 0, around = 0;
};
Sent BytesSent(const PartitionedProgram& p) {
  Sent sent;
  for (const CollectiveRecord& r : p.local.collectives) {
    (r.computation == p.local.module.entry() ? sent.around : sent.in_loops) +=
        r.bytes_moved * r.trip_count;
  }
  return sent;
}

TEST(Loops, MapOverShardedRows) {
  VerifyFamily({.text = Map("@A", kZeros), .sizes = kSizes, .max_cases = 200});
}

TEST(Loops, ResultsThatBeginWithAnArray) {
  VerifyFamily({.text = Map("3", "parameter(1)<1:2>"), .sizes = kSizes, .max_cases = 200});
}

TEST(Loops, GatherOnceWhatTheyRead) {
  const auto p = Partitioned(Map("1024", kZeros), {{'A', 1024}, {'B', 24}}, {kRows, kRows});
  const Sent sent = BytesSent(*p);
  EXPECT_EQ(sent.in_loops, 0) << LocalText(*p);
  EXPECT_EQ(sent.around, 4 * 1024 * 24 / 8 * 7);  // one all-gather
}

// With one iteration, a gather in the loop is as good as one before it: nothing is changed.
TEST(Loops, OfOneIterationCarryWhatTheyAreGiven) {
  const auto p = Partitioned(Map("1", kZeros), {{'A', 1024}, {'B', 24}}, {kRows, kRows});
  EXPECT_GT(BytesSent(*p).in_loops, 0) << LocalText(*p);
}

// In few iterations it is cheaper to move the shards to another dimension each time.
TEST(Loops, WeighTheGatherByTheirTripCount) {
  const Sizes sizes = {{'A', 4096}, {'B', 4096}};
  const auto twice = Partitioned(Map("2", kZeros), sizes, {kRows, ""});
  const auto often = Partitioned(Map("100", kZeros), sizes, {kRows, ""});
  EXPECT_LT(BytesSent(*twice).around, BytesSent(*often).around);
  EXPECT_EQ(BytesSent(*often).in_loops, 0);
}

TEST(Loops, OfUnknownLengthAreWeighedByTheCostModelsTripCount) {
  const std::string text = absl::StrReplaceAll(
      Map("1", kZeros), {{"n = s32[] constant(1)", "n = s32[] multiply(i, i)"}});
  const Sizes sizes = {{'A', 1024}, {'B', 24}};
  EXPECT_EQ(BytesSent(*Partitioned(text, sizes, {kRows, kRows})).in_loops, 0);
  TextOptions once;
  once.spmd.cost.trip_count = 1;
  EXPECT_GT(BytesSent(*Partitioned(text, sizes, {kRows, kRows}, once)).in_loops, 0);
}

// A device sets the rows of its own shard: what is stacked is nowhere whole.
TEST(Loops, StackIntoShards) {
  const auto p = Partitioned(Map("1024", kZeros), {{'A', 1024}, {'B', 24}}, {"", kRows});
  EXPECT_TRUE(p->local.collectives.empty()) << LocalText(*p);
  const Module& m = p->local.module;
  for (int k = 0; k < m.num_instructions(); ++k) {
    const Instruction& i = m.instr(InstrId(k));
    if (i.opcode == Opcode::kDynamicUpdateSlice) EXPECT_EQ(i.shape->dim(0), 1024 / 8);
  }
}

// Rows that the devices have parts of are stacked as they are, and moved once.
TEST(Loops, StackWholeWhatWouldBeGatheredRowByRow) {
  constexpr char kColumns[] = ", sharding={devices=[1,8]<=[8]}";
  const auto p = Partitioned(Map("1024", kZeros), {{'A', 1024}, {'B', 24}}, {kColumns, kRows});
  const Sent sent = BytesSent(*p);
  EXPECT_EQ(sent.in_loops, 0) << LocalText(*p);
  EXPECT_EQ(sent.around, 4 * 1024 * 24 / 8 / 8 * 7);  // one all-to-all
}

// What the program says of the carried array, in the loop, is not changed.
TEST(Loops, KeepWhatIsAnnotatedInThem) {
  const std::string text = absl::StrReplaceAll(
      Map("1024", kZeros),
      {{"xs = f32[@A,@B] get-tuple-element(p), index=1",
        "carried = f32[@A,@B] get-tuple-element(p), index=1\n"
        "  xs = f32[@A,@B] custom-call(carried), custom_call_target=\"Sharding\"<0:2>"}});
  const auto p = Partitioned(text, {{'A', 1024}, {'B', 24}}, {kRows, ""});
  EXPECT_GT(BytesSent(*p).in_loops, 0) << LocalText(*p);
}

// The whole array takes part in what each iteration computes, so it keeps its shards.
TEST(Loops, KeepShardsThatTheyComputeWith) {
  const std::string text = absl::StrReplaceAll(
      Map("1024", kZeros),
      {{"tuple(n, xs, out)", "tuple(n, half, out)"},
       {"one = s32[] constant(1)", "one = s32[] constant(1)\n  half = f32[@A,@B] negate(xs)"}});
  const auto p = Partitioned(text, {{'A', 1024}, {'B', 24}}, {kRows, ""});
  bool shards = false;
  const Module& m = p->local.module;
  for (int k = 0; k < m.num_instructions(); ++k) {
    const Instruction& i = m.instr(InstrId(k));
    if (i.opcode == Opcode::kNegate) shards = i.shape->dim(0) == 1024 / 8;
  }
  EXPECT_TRUE(shards) << LocalText(*p);
}

// A loop in a loop, and branches: row i of the result is row i of x, to which column sums are added
// element by element in an inner loop, or zero.
constexpr char kNested[] = R"(
inner {
  p = (s32[], s32[], s32[@A,@B], s32[1,1]) parameter(0)
  j = s32[] get-tuple-element(p), index=0
  i = s32[] get-tuple-element(p), index=1
  xs = s32[@A,@B] get-tuple-element(p), index=2
  s = s32[1,1] get-tuple-element(p), index=3
  e = s32[1,1] dynamic-slice(xs, i, j), dynamic_slice_sizes={1,1}
  t = s32[1,1] add(s, e)
  one = s32[] constant(1)
  n = s32[] add(j, one)
  ROOT r = (s32[], s32[], s32[@A,@B], s32[1,1]) tuple(n, i, xs, t)
}

inner_condition {
  p = (s32[], s32[], s32[@A,@B], s32[1,1]) parameter(0)
  j = s32[] get-tuple-element(p), index=0
  n = s32[] constant(@B)
  ROOT r = pred[] compare(j, n), direction=LT
}

set {
  p = (s32[], s32[1,1], s32[@A,1]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  s = s32[1,1] get-tuple-element(p), index=1
  ys = s32[@A,1] get-tuple-element(p), index=2
  zero = s32[] constant(0)
  ROOT r = s32[@A,1] dynamic-update-slice(ys, s, i, zero)
}

keep {
  ROOT ys = s32[@A,1] parameter(0)
}

body {
  p = (s32[], s32[@A,@B], s32[@A,1]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  xs = s32[@A,@B] get-tuple-element(p), index=1
  ys = s32[@A,1] get-tuple-element(p), index=2
  zero = s32[] constant(0)
  none = s32[1,1] broadcast(zero), dimensions={}
  t = (s32[], s32[], s32[@A,@B], s32[1,1]) tuple(zero, i, xs, none)
  w = (s32[], s32[], s32[@A,@B], s32[1,1]) while(t), condition=inner_condition, body=inner
  same = s32[@A,@B] get-tuple-element(w), index=2
  s = s32[1,1] get-tuple-element(w), index=3
  two = s32[] constant(2)
  odd = s32[] remainder(i, two)
  is = pred[] compare(odd, zero), direction=NE
  a = (s32[], s32[1,1], s32[@A,1]) tuple(i, s, ys)
  out = s32[@A,1] conditional(is, a, ys), true_computation=set, false_computation=keep
  one = s32[] constant(1)
  n = s32[] add(i, one)
  ROOT r = (s32[], s32[@A,@B], s32[@A,1]) tuple(n, same, out)
}

condition {
  p = (s32[], s32[@A,@B], s32[@A,1]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(@A)
  ROOT r = pred[] compare(i, n), direction=LT
}

ENTRY main {
  zero = s32[] constant(0)
  xs = s32[@A,@B] parameter(0)<0:2>
  ys = s32[@A,1] parameter(1)<1:2>
  t = (s32[], s32[@A,@B], s32[@A,1]) tuple(zero, xs, ys)
  w = (s32[], s32[@A,@B], s32[@A,1]) while(t), condition=condition, body=body
  out = s32[@A,1] get-tuple-element(w), index=2
  ROOT o = s32[@A,1] copy(out)<2:2>
}
)";

TEST(Loops, InLoopsAndBranches) {
  VerifyFamily({.text = kNested, .sizes = kSizes, .max_cases = 200});
}

TEST(Loops, InLoopsGatherBeforeTheOuterOne) {
  const auto p = Partitioned(kNested, {{'A', 64}, {'B', 16}}, {kRows, kRows, kRows});
  const Sent sent = BytesSent(*p);
  EXPECT_EQ(sent.in_loops, 0) << LocalText(*p);
  EXPECT_EQ(sent.around, 4 * 64 * 16 / 8 * 7);  // of xs; each device sets rows of its own in ys
}

// The program states no sharding for its result, which is replicated. The stack stays in shards
// until the loop ends.
TEST(Loops, AStackThatTheProgramReturnsIsGatheredOnce) {
  const std::string text = absl::StrReplaceAll(
      Map("8", kZeros), {{"  ROOT o = f32[@A,@B] copy(out)<1:2>\n", ""},
                         {"  out = f32[@A,@B] get-tuple-element(w), index=2\n}",
                          "  ROOT out = f32[@A,@B] get-tuple-element(w), index=2\n}"}});
  for (const StateSearch search : {StateSearch::kNone, StateSearch::kSmall}) {
    const auto p = Partitioned(text, {{'A', 8}, {'B', 64}}, {", sharding={devices=[1,8]<=[8]}"},
                               {.search = search});
    ASSERT_NE(p, nullptr);
    ASSERT_EQ(p->local.collectives.size(), 1);
    const CollectiveRecord& r = p->local.collectives[0];
    EXPECT_EQ(r.opcode, Opcode::kAllGather);
    EXPECT_EQ(r.trip_count, 1);
    EXPECT_EQ(r.bytes_moved, 7.0 / 8 * 8 * 64 * 4);
  }
}

}  // namespace
}  // namespace shardcall
