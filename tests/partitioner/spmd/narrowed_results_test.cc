// SPDX-License-Identifier: Apache-2.0
// Results of which no op reads more than shards.
#include "shardcall/partitioner/spmd/states/narrowed_results.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "shardcall/partitioner/api/report.h"
#include "tests/support/charged.h"
#include "tests/support/verify_text.h"

namespace shardcall {
namespace {

constexpr double kShare = 7. / 8;  // of an array, that a device sends to gather or scatter it

std::unique_ptr<PartitionedProgram> Partitioned(const std::string& text, StateSearch search) {
  TextOptions options;
  options.search = search;
  auto p = PartitionText(text, options);
  EXPECT_TRUE(p.ok()) << p.status();
  EXPECT_EQ(WhyChargedOtherwise(**p, options.spmd), "");
  return *std::move(p);
}

// The gradient of weights that the model constrains to be replicated, which JAX constrains as well.
// USED is what the optimizer makes of it, and AFTER the sharding of that.
std::string Gradient(absl::string_view constraint, absl::string_view used,
                     absl::string_view after) {
  return absl::StrReplaceAll(R"(HloModule m, num_partitions=8
ENTRY main {
  x = f32[128,64] parameter(0), sharding={devices=[8,1]<=[8]}
  g = f32[128,32] parameter(1), sharding={devices=[8,1]<=[8]}
  w = f32[64,32] parameter(2), sharding={devices=[8,1]<=[8]}
  d = f32[32,64] dot(g, x), lhs_contracting_dims={0}, rhs_contracting_dims={0}
  t = f32[64,32] transpose(d), dimensions={1,0}
  c = f32[64,32] custom-call(t), custom_call_target="Sharding", sharding=CONSTRAINT
  n = f32[64,32] negate(c)
  ROOT r = f32[64,32] USED, sharding=AFTER
})",
                             {{"CONSTRAINT", constraint}, {"USED", used}, {"AFTER", after}});
}

TEST(NarrowedResults, AReplicatedGradientIsScatteredToTheShardsThatAreRead) {
  const double bytes = 4 * 64 * 32 * kShare;
  const std::string text = Gradient("{replicated}", "subtract(w, n)", "{devices=[8,1]<=[8]}");
  for (const StateSearch search : {StateSearch::kNone, StateSearch::kSmall}) {
    const auto p = Partitioned(text, search);
    EXPECT_EQ(TotalBytesMoved(p->local), bytes);
    EXPECT_EQ(p->plan.bytes, bytes);
    EXPECT_EQ(CountOpcode(*p, Opcode::kReduceScatter), 1);
    EXPECT_EQ(CountOpcode(*p, Opcode::kAllReduce), 0);
  }
  EXPECT_EQ(WhyNotEqual(text, {}), "");
}

TEST(NarrowedResults, WhatIsReadWholeStaysWhole) {
  const double bytes = 4 * 64 * 32 * kShare;
  const std::string text = Gradient("{replicated}", "add(n, c)", "{replicated}");
  EXPECT_EQ(TotalBytesMoved(Partitioned(text, StateSearch::kNone)->local), 2 * bytes);
  EXPECT_EQ(WhyNotEqual(text, {}), "");
}

// Of sizes that devices do not divide, too.
TEST(NarrowedResults, ShardsMayBeUneven) {
  const std::string text = absl::StrReplaceAll(
      Gradient("{replicated}", "subtract(w, n)", "{devices=[8,1]<=[8]}"), {{"64", "60"}});
  const auto p = Partitioned(text, StateSearch::kNone);
  EXPECT_EQ(TotalBytesMoved(p->local), 4 * 64 * 32 * kShare);
  EXPECT_EQ(WhyNotEqual(text, {}), "");
}

// One op reads shards over one axis, the other over both.
TEST(NarrowedResults, TheLargestShardsThatAreReadAreStored) {
  const std::string text = R"(HloModule m, num_partitions=8
ENTRY main {
  x = f32[128,64] parameter(0), sharding={devices=[8,1]<=[8]}
  g = f32[128,32] parameter(1), sharding={devices=[8,1]<=[8]}
  v = f32[64,32] parameter(2), sharding={devices=[4,1,2]<=[8] last_tile_dim_replicate}
  w = f32[64,32] parameter(3), sharding={devices=[4,2]<=[8]}
  d = f32[64,32] dot(x, g), lhs_contracting_dims={0}, rhs_contracting_dims={0}, sharding={replicated}
  s = f32[64,32] subtract(v, d), sharding={devices=[4,1,2]<=[8] last_tile_dim_replicate}
  t = f32[64,32] subtract(w, d), sharding={devices=[4,2]<=[8]}
  ROOT r = (f32[64,32], f32[64,32]) tuple(s, t), sharding={{devices=[4,1,2]<=[8] last_tile_dim_replicate}, {devices=[4,2]<=[8]}}
})";
  EXPECT_EQ(WhyNotEqual(text, {}), "");
  // Reduce-scattered over the 4 and reduced over the 2, where two collectives take less time than
  // an all-reduce over the 8.
  const auto p = Partitioned(absl::StrReplaceAll(text, {{"[64,32]", "[4096,8192]"},
                                                        {"[128,64]", "[4096,4096]"},
                                                        {"[128,32]", "[4096,8192]"}}),
                             StateSearch::kNone);
  EXPECT_EQ(CountOpcode(*p, Opcode::kReduceScatter), 1);
  EXPECT_EQ(TotalBytesMoved(p->local), 4. * 4096 * 8192 * (3. / 4 + 1. / 4));
}

}  // namespace
}  // namespace shardcall
