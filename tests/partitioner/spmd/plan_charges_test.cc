// SPDX-License-Identifier: Apache-2.0
// What a plan is charged with is what its program sends, and over which links.
#include <gtest/gtest.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/api/report.h"
#include "tests/partitioner/spmd/plan_testing.h"
#include "tests/support/charged.h"

namespace shardcall {
namespace {

// A loop begins two of its values with one, which is gathered once, and the plan knows it.
TEST(PlanCharges, AValueThatALoopBeginsTwiceWithIsChargedOnce) {
  const std::string text = R"(
HloModule m, num_partitions=4
body {
  b = (s32[], f32[256,256], f32[256,256]) parameter(0)
  i = s32[] get-tuple-element(b), index=0
  one = s32[] constant(1)
  n = s32[] add(i, one)
  x = f32[256,256] get-tuple-element(b), index=1
  y = f32[256,256] get-tuple-element(b), index=2
  u = f32[256,256] sine(x)
  v = f32[256,256] cosine(y)
  ROOT r = (s32[], f32[256,256], f32[256,256]) tuple(n, u, v)
}
condition {
  b = (s32[], f32[256,256], f32[256,256]) parameter(0)
  i = s32[] get-tuple-element(b), index=0
  trips = s32[] constant(16)
  ROOT l = pred[] compare(i, trips), direction=LT
}
ENTRY main {
  a = f32[256,256] parameter(0), sharding={devices=[1,4]<=[4]}
  start = s32[] constant(0)
  init = (s32[], f32[256,256], f32[256,256]) tuple(start, a, a)
  loop = (s32[], f32[256,256], f32[256,256]) while(init), condition=condition, body=body, sharding={{replicated}, {replicated}, {replicated}}
  x = f32[256,256] get-tuple-element(loop), index=1
  y = f32[256,256] get-tuple-element(loop), index=2
  ROOT sum = f32[256,256] add(x, y), sharding={replicated}
}
)";
  const auto p = PartitionText(text, {});
  ASSERT_TRUE(p.ok()) << p.status();
  ASSERT_EQ((*p)->local.collectives.size(), 1);
  EXPECT_EQ((*p)->plan.bytes, (*p)->local.collectives[0].bytes_moved);
}

// Tiles of a dimension of 3 elements become others, by rows of 3 elements of 4 bits.
TEST(PlanCharges, ElementsOfFourBitsAreChargedInWholeBytes) {
  const auto p = Done(R"(
  x = f32[2,3,3] parameter(0), sharding={devices=[4,1,2]<=[2,4]T(1,0)}
  ROOT y = s4[2,3,3] convert(x), sharding={devices=[1,1,8]<=[8]}
)",
                      8);
  ASSERT_EQ(p->local.collectives.size(), 2);
  EXPECT_EQ(p->local.collectives[0].bytes_moved, 1);  // 2 of half of the devices
  EXPECT_EQ(WhyChargedOtherwise(*p, TextOptions().spmd), "");
}

// Contractions over 2 hosts and over 8 devices: the sums go where links are fast.
TEST(PlanCharges, SumsStayWithinHosts) {
  const std::string body = R"(
  x = f32[256,4096] parameter(0), sharding={devices=[1,2,8]<=[16] last_tile_dim_replicate}
  w = f32[4096,256] parameter(1), sharding={devices=[8,1,2]<=[2,8]T(1,0) last_tile_dim_replicate}
  ROOT y = f32[256,256] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
)";
  const auto sent = [&](const char* cost) {
    TextOptions options;
    options.spmd.cost = *ParseCostModel(cost);
    const auto p = Done(body, 16, options);
    double bytes = 0, between_hosts = 0;
    for (const CollectiveRecord& r : p->local.collectives) {
      bytes += r.bytes_moved;
      between_hosts += r.between_hosts;
    }
    EXPECT_EQ(WhyChargedOtherwise(*p, options.spmd), "");
    return std::make_pair(bytes, between_hosts);
  };
  constexpr double kKiB = 1024;
  EXPECT_EQ(sent("h100"), std::make_pair(704 * kKiB, 0.0));
  // Only the sum over both hosts leaves them.
  EXPECT_EQ(sent("h100, host_devices=8, network=5e9"), std::make_pair(704 * kKiB, 256 * kKiB));
  // The same machine by the axes of the mesh, x0 of 2 hosts and x1 of 8 devices.
  for (const char* axes : {"h100, bandwidth.x0=5e9", "bandwidth.x0=5e9, bandwidth.x1=450e9",
                           "h100, bandwidth=5e9, bandwidth.x1=450e9"}) {
    EXPECT_EQ(sent(axes), std::make_pair(704 * kKiB, 256 * kKiB)) << axes;
  }
}

// An annotation whose result is read only in shardings of which there is another copy is dead code.
TEST(PlanCharges, AnAnnotationThatNobodyTakesCostsNothing) {
  constexpr char kTwoOfOne[] = R"(
  x = f32[1024,2048] parameter(0), sharding={devices=[8,1]<=[8]}
  y = f32[1024,2048] sine(x)
  columns = f32[1024,2048] custom-call(y), custom_call_target="Sharding", sharding={devices=[1,8]<=[8]}
  whole = f32[1024,2048] custom-call(y), custom_call_target="Sharding", sharding={replicated}
)";
  const double columns = 1024 * 2048 * 4 / 8 * 7 / 8, whole = columns * 8;
  struct Case {
    const char* rest;
    double bytes;
  };
  for (
      const Case& c : {
          Case{"ROOT r = f32[1024,2048] add(columns, whole), sharding={devices=[1,8]<=[8]}",
               columns},
          Case{R"(p = f32[1024,2048] add(columns, whole), sharding={devices=[1,8]<=[8]}
  q = f32[1024,2048] cosine(whole), sharding={replicated}
  ROOT r = (f32[1024,2048], f32[1024,2048]) tuple(p, q), sharding={{devices=[1,8]<=[8]}, {replicated}})",
               columns + whole},
          // Taken by another name.
          Case{
              R"(name = f32[1024,2048] custom-call(whole), custom_call_target="Sharding", sharding={replicated}
  p = f32[1024,2048] add(columns, whole), sharding={devices=[1,8]<=[8]}
  ROOT r = (f32[1024,2048], f32[1024,2048]) tuple(p, name), sharding={{devices=[1,8]<=[8]}, {replicated}})",
              columns + whole},
          // Given back, and read otherwise beside that.
          Case{R"(p = f32[1024,2048] add(columns, whole), sharding={devices=[1,8]<=[8]}
  ROOT r = (f32[1024,2048], f32[1024,2048]) tuple(p, whole), sharding={{devices=[1,8]<=[8]}, {replicated}})",
               columns + whole},
      }) {
    const auto p = Done(absl::StrCat(kTwoOfOne, "  ", c.rest, "\n"), 8);
    EXPECT_EQ(TotalBytesMoved(p->local), c.bytes) << c.rest;
    EXPECT_EQ(p->plan.bytes, c.bytes) << c.rest;
  }
}

}  // namespace
}  // namespace shardcall
