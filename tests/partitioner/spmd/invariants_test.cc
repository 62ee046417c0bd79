// SPDX-License-Identifier: Apache-2.0
// Values that a loop does not change are resharded for it once, as far as there is memory for that.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_replace.h"
#include "shardcall/partitioner/api/report.h"
#include "tests/partitioner/spmd/plan_testing.h"
#include "tests/support/program_family.h"

namespace shardcall {
namespace {

// h is multiplied by w in each of 3 iterations, twice over: in a loop in a loop. `unread` holds
// memory.
constexpr char kPower[] = R"(
inner {
  p = (s32[], f32[@A,@B], f32[@B,@B]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  h = f32[@A,@B] get-tuple-element(p), index=1
  w = f32[@B,@B] get-tuple-element(p), index=2
  one = s32[] constant(1)
  j = s32[] add(i, one)
  CAST
  n = f32[@A,@B] dot(h, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT t = (s32[], f32[@A,@B], f32[@B,@B]) tuple(j, n, w)
}
condition {
  p = (s32[], f32[@A,@B], f32[@B,@B]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(3)
  ROOT r = pred[] compare(i, n), direction=LT
}
outer {
  p = (s32[], f32[@A,@B], f32[@B,@B]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  h = f32[@A,@B] get-tuple-element(p), index=1
  w = f32[@B,@B] get-tuple-element(p), index=2
  one = s32[] constant(1)
  j = s32[] add(i, one)
  zero = s32[] constant(0)
  c = f32[@A,@B] negate(h)
  t = (s32[], f32[@A,@B], f32[@B,@B]) tuple(zero, c, w)
  l = (s32[], f32[@A,@B], f32[@B,@B]) while(t), condition=condition2, body=inner
  n = f32[@A,@B] get-tuple-element(l), index=1
  ROOT r = (s32[], f32[@A,@B], f32[@B,@B]) tuple(j, n, w)
}
ENTRY main {
  h = f32[@A,@B] parameter(0)<0:2>
  w = f32[@B,@B] parameter(1)<1:2>
  unread = f32[@M] parameter(2)
  zero = s32[] constant(0)
  t = (s32[], f32[@A,@B], f32[@B,@B]) tuple(zero, h, w)
  l = (s32[], f32[@A,@B], f32[@B,@B]) while(t), condition=condition, body=outer
  ROOT r = f32[@A,@B] get-tuple-element(l), index=1<2:2>
}
)";

std::string Power(const std::string& cast = "v = f32[@B,@B] copy(w)") {
  std::string text = absl::StrReplaceAll(kPower, {{"CAST", cast}});
  // Each loop has a condition of its own.
  const size_t begin = text.find("condition {"), end = text.find("outer {");
  std::string again = text.substr(begin, end - begin);
  again.replace(0, sizeof("condition") - 1, "condition2");
  return text.insert(end, again);
}

std::unique_ptr<PartitionedProgram> Rows(const std::string& text, int64_t rows_of_h,
                                         int64_t unread) {
  const std::string rows = ", sharding={devices=[8,1]<=[8]}";
  auto p = PartitionText(Instantiate(text, {{'A', rows_of_h}, {'B', 16}, {'M', unread}},
                                     TestMesh{{8}}, {rows, rows, rows}),
                         {});
  EXPECT_TRUE(p.ok()) << p.status();
  return p.ok() ? *std::move(p) : nullptr;
}

// A gather of w, f32[16,16] in 8 shards of 128 bytes.
constexpr double kGather = 7 * 128;

TEST(Invariants, AWeightIsGatheredOnceForTheLoopsAround) {
  const auto p = Rows(Power(), 256, 65536);
  ASSERT_NE(p, nullptr);
  EXPECT_EQ(TotalBytesMoved(p->local), kGather) << LocalText(*p);
  ASSERT_EQ(p->local.collectives.size(), 1u);
  EXPECT_EQ(p->local.collectives[0].computation, p->local.module.entry());
  EXPECT_EQ(p->local.collectives[0].trip_count, 1);
}

TEST(Invariants, NotWhereThereIsNoMemoryForIt) {
  const auto p = Rows(Power(), 64, 1);
  ASSERT_NE(p, nullptr);
  EXPECT_EQ(TotalBytesMoved(p->local), 9 * kGather) << LocalText(*p);
}

// The gather is of what the conversion gives, in half the bytes.
TEST(Invariants, SoIsWhatFollowsFromThem) {
  const auto p = Rows(Power(R"(b = bf16[@B,@B] convert(w)
  v = bf16[@B,@B] negate(b))"),
                      256, 65536);
  ASSERT_NE(p, nullptr);
  EXPECT_EQ(TotalBytesMoved(p->local), kGather / 2) << LocalText(*p);
}

// A product of few rows would otherwise move them in each iteration.
TEST(Invariants, AGatherIsWeighedAsOne) {
  const auto p = PartitionText(
      Instantiate(Power(), {{'A', 8}, {'B', 64}, {'M', 1 << 20}}, TestMesh{{8}},
                  {", sharding={devices=[8,1]<=[8]}", ", sharding={devices=[8,1]<=[8]}",
                   ", sharding={devices=[8,1]<=[8]}"}),
      {});
  ASSERT_TRUE(p.ok()) << p.status();
  EXPECT_EQ(TotalBytesMoved((*p)->local), 7 * 8 * 64 * 4) << LocalText(**p);
}

TEST(Invariants, ValuesAreRightUnderEverySharding) {
  VerifyFamily({.text = Power(),
                .sizes = {{{'A', 8}, {'B', 4}, {'M', 16384}}, {{'A', 5}, {'B', 3}, {'M', 16384}}},
                .max_cases = 300});
}

}  // namespace
}  // namespace shardcall
