// SPDX-License-Identifier: Apache-2.0
// Branches that end in other shardings than their conditional has, and loops whose bodies do.
#include <gtest/gtest.h>

#include "absl/strings/str_replace.h"
#include "shardcall/partitioner/api/report.h"
#include "tests/partitioner/spmd/plan_testing.h"
#include "tests/support/verify_text.h"

namespace shardcall {
namespace {

const std::vector<Sizes> kSizes = {{{'A', 8}, {'B', 4}}, {{'A', 10}, {'B', 7}}};

std::string Annotated(const std::string& result, const std::string& operand, int slot) {
  return absl::StrCat(result, " = f32[@A,@B] custom-call(", operand,
                      "), custom_call_target=\"Sharding\"<", slot, ":2>\n");
}

TEST(Branches, EndInShardingsOfTheirOwn) {
  VerifyFamily(
      {.text = "yes {\n  x = f32[@A,@B] parameter(0)\n  n = f32[@A,@B] negate(x)\n  ROOT " +
               Annotated("r", "n", 0) + "}\n\nno {\n  x = f32[@A,@B] parameter(0)\n  ROOT " +
               Annotated("r", "x", 1) + R"(}

ENTRY main {
  p = pred[] parameter(0)
  x = f32[@A,@B] parameter(1)
  y = f32[@A,@B] parameter(2)<2:2>
  c = f32[@A,@B] conditional(p, x, y), true_computation=yes, false_computation=no
  ROOT r = f32[@A,@B] abs(c)<3:2>
}
)",
       .sizes = kSizes,
       .max_cases = 300,
       .no_fallback = true});
}

TEST(Branches, ManyWithTuplesAndOneInside) {
  VerifyFamily(
      {.text = "in0 {\n  x = f32[@A,@B] parameter(0)\n  ROOT " + Annotated("r", "x", 0) +
               "}\n\nin1 {\n  x = f32[@A,@B] parameter(0)\n  d = f32[@A,@B] add(x, x)\n  ROOT " +
               Annotated("r", "d", 1) + R"(}

b0 {
  t = (f32[@A,@B], pred[]) parameter(0)
  x = f32[@A,@B] get-tuple-element(t), index=0
  p = pred[] get-tuple-element(t), index=1
  c = f32[@A,@B] conditional(p, x, x), true_computation=in0, false_computation=in1
  s = f32[@B,@A] transpose(x), dimensions={1,0}
  ROOT r = (f32[@A,@B], f32[@B,@A]) tuple(c, s)
}

b1 {
  x = f32[@A,@B] parameter(0)
  )" + Annotated("c", "x", 2) +
               R"(  s = f32[@B,@A] transpose(x), dimensions={1,0}<3:2>
  ROOT r = (f32[@A,@B], f32[@B,@A]) tuple(c, s)
}

b2 {
  x = f32[@A,@B] parameter(0)
  n = f32[@A,@B] negate(x)
  s = f32[@B,@A] transpose(n), dimensions={1,0}
  )" + Annotated("c", "n", 1) +
               R"(  ROOT r = (f32[@A,@B], f32[@B,@A]) tuple(c, s)
}

ENTRY main {
  k = s32[] parameter(0)
  p = pred[] parameter(1)
  x = f32[@A,@B] parameter(2)<0:2>
  t = (f32[@A,@B], pred[]) tuple(x, p)
  ROOT r = (f32[@A,@B], f32[@B,@A]) conditional(k, t, x, x), branch_computations={b0, b1, b2}
}
)",
       .sizes = kSizes,
       .max_cases = 300,
       .no_fallback = true});
}

TEST(Branches, BodiesEndInOtherShardingsThanTheirLoopBeginsWith) {
  VerifyFamily({.text = R"(
body {
  t = (s32[], f32[@A,@B]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  x = f32[@A,@B] get-tuple-element(t), index=1
  one = s32[] constant(1)
  n = s32[] add(i, one)
  d = f32[@A,@B] add(x, x)
  )" + Annotated("y", "d", 0) +
                        R"(  ROOT r = (s32[], f32[@A,@B]) tuple(n, y)
}

condition {
  t = (s32[], f32[@A,@B]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  three = s32[] constant(3)
  ROOT r = pred[] compare(i, three), direction=LT
}

ENTRY main {
  zero = s32[] constant(0)
  x = f32[@A,@B] parameter(0)
  )" + Annotated("first", "x", 1) +
                        R"(  t = (s32[], f32[@A,@B]) tuple(zero, first)
  w = (s32[], f32[@A,@B]) while(t), condition=condition, body=body
  y = f32[@A,@B] get-tuple-element(w), index=1
  ROOT r = f32[@A,@B] negate(y)<2:2>
}
)",
                .sizes = kSizes,
                .max_cases = 200,
                .no_fallback = true});
}

// The root of a body says another sharding than the loop itself.
TEST(Branches, LoopsKeepTheirShardingWhateverTheirBodiesEndWith) {
  const std::string text = R"(HloModule m, num_partitions=4
body {
  x = s32[8,8] parameter(0), sharding={devices=[4,1]<=[4]}
  ROOT r = s32[8,8] add(x, x), sharding={devices=[1,4]<=[4]}
}
condition {
  x = s32[8,8] parameter(0)
  f = s32[1,1] slice(x), slice={[0:1], [0:1]}
  s = s32[] reshape(f)
  limit = s32[] constant(1000)
  ROOT r = pred[] compare(s, limit), direction=LT
}
ENTRY main {
  x = s32[8,8] parameter(0), sharding={devices=[1,4]<=[4]}
  a = s32[8,8] abs(x)
  one = s32[] constant(1)
  ones = s32[8,8] broadcast(one), dimensions={}
  y = s32[8,8] add(a, ones)
  ROOT w = s32[8,8] while(y), condition=condition, body=body, sharding={devices=[4,1]<=[4]}
}
)";
  EXPECT_EQ(WhyNotEqual(text, {}), "");
}

// Each branch gathers what it ends with; no branch reshards for the other one first.
TEST(Branches, ReshardOnceIfTheResultIsWantedWhole) {
  const std::string text = R"(HloModule branches, num_partitions=8
t { a = f32[8,8] parameter(0)
  ROOT s = f32[8,8] custom-call(a), custom_call_target="Sharding", sharding={devices=[8,1]<=[8]} }
f { b = f32[8,8] parameter(0)
  ROOT u = f32[8,8] custom-call(b), custom_call_target="Sharding", sharding={devices=[1,8]<=[8]} }
ENTRY main {
  p = pred[] parameter(0)
  x = f32[8,8] parameter(1)
  ROOT y = f32[8,8] conditional(p, x, x), true_computation=t, false_computation=f
}
)";
  EXPECT_EQ(WhyNotEqual(text, {}), "");
  const auto p = PartitionText(text, {});
  ASSERT_TRUE(p.ok()) << p.status();
  EXPECT_EQ(CountOpcode(**p, Opcode::kAllGather), 2) << LocalText(**p);
  EXPECT_EQ((*p)->local.collectives.size(), 2u) << LocalText(**p);
}

// One branch adds both values, the other reverses the first one.
std::string Reversing(const std::string& x, const std::string& y, const std::string& result) {
  return absl::StrReplaceAll(R"(HloModule m, num_partitions=4
yes {
  t = (f32[16,8], f32[16,8]) parameter(0)
  x = f32[16,8] get-tuple-element(t), index=0
  y = f32[16,8] get-tuple-element(t), index=1
  ROOT r = f32[16,8] add(x, y)
}
no {
  t = (f32[16,8], f32[16,8]) parameter(0)
  x = f32[16,8] get-tuple-element(t), index=0
  y = f32[16,8] get-tuple-element(t), index=1
  ROOT r = f32[16,8] reverse(x), dimensions={0}
}
ENTRY main {
  x = f32[16,8] parameter(0), sharding=$x
  y = f32[16,8] parameter(1), sharding=$y
  p = pred[] parameter(2)
  t = (f32[16,8], f32[16,8]) tuple(x, y)
  ROOT c = f32[16,8] conditional(p, t, t), true_computation=yes, false_computation=no, sharding=$r
})",
                             {{"$x", x}, {"$y", y}, {"$r", result}});
}

double SentBy(const std::string& program, StateSearch search) {
  TextOptions options;
  options.search = search;
  EXPECT_EQ(WhyNotEqual(program, options), "");
  const auto p = PartitionText(program, options);
  return p.ok() ? TotalBytesMoved((*p)->local) : -1;
}

TEST(Branches, ReadWholeWhatIsWholeOutside) {
  const std::string rows = "{devices=[4,1]<=[4]}";
  const std::string program = Reversing("{replicated}", rows, rows);
  EXPECT_EQ(SentBy(program, StateSearch::kNone), 16 * 8 * 4 / 4);  // shards change places
  EXPECT_EQ(SentBy(program, StateSearch::kSmall), 0);
}

TEST(Branches, AreEachAsLikely) {
  // To gather x in the branch that reverses it costs half of what it costs before both; y is
  // gathered in no branch that does not read it.
  const std::string rows = "{devices=[4,1]<=[4]}";
  const auto p = PartitionText(Reversing(rows, rows, "{replicated}"), [] {
    TextOptions options;
    options.search = StateSearch::kSmall;
    return options;
  }());
  ASSERT_TRUE(p.ok()) << p.status();
  const Module& m = (*p)->local.module;
  for (InstrId id : m.comp(m.entry()).instructions) {
    EXPECT_FALSE(HasTrait(m.instr(id).opcode, kCollectiveOp)) << m.instr(id).name;
  }
  EXPECT_EQ(CountOpcode(**p, Opcode::kAllGather), 2);  // one in each branch
  EXPECT_EQ(CountOpcode(**p, Opcode::kCollectivePermute), 0);
}

}  // namespace
}  // namespace shardcall
