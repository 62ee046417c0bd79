// SPDX-License-Identifier: Apache-2.0
// Programs for backends that lack collectives, or run them over some groups only: no collective
// that lacks is left, the results are the same, and no more is sent than what stands for it sends.
#include "shardcall/partitioner/spmd/localize/group_collectives.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "shardcall/partitioner/ir/shapes/collective_bytes.h"
#include "tests/partitioner/spmd/plan_testing.h"

namespace shardcall {
namespace {

using internal::CollectiveOf;
using testing::HasSubstr;

TextOptions On(const std::string& cost) {
  TextOptions options;
  options.spmd.cost = *ParseCostModel(cost);
  return options;
}

// The collectives of the program that is made, by opcode. "" where its results differ.
std::set<Opcode> Verified(const std::string& text, const std::string& cost) {
  SCOPED_TRACE(absl::StrCat(cost, "\n", text));
  const TextOptions options = On(cost);
  EXPECT_EQ(WhyNotEqual(text, options), "");
  const auto p = PartitionText(text, options);
  EXPECT_TRUE(p.ok()) << p.status();
  std::set<Opcode> out;
  if (!p.ok()) return out;
  const Module& m = (*p)->local.module;
  for (int k = 0; k < m.num_instructions(); ++k) {
    const auto kind = CollectiveOf(m.instr(InstrId(k)).opcode);
    if (!kind.has_value()) continue;
    EXPECT_TRUE(options.spmd.cost.backend.Has(*kind)) << OpcodeText(m.instr(InstrId(k)).opcode);
    out.insert(m.instr(InstrId(k)).opcode);
  }
  return out;
}

constexpr const char* kSets[] = {"all-gather",
                                 "all-reduce",
                                 "all-to-all",
                                 "collective-permute",
                                 "all-reduce+all-gather",
                                 "reduce-scatter+all-gather",
                                 "reduce-scatter+all-to-all",
                                 "all-reduce+collective-permute"};

// A dot whose partial sums are reduced or scattered, and reshards that gather, exchange and permute
// shards. TYPE: floats have negative zeros, pred has no sum, complex has two parts.
constexpr char kMoves[] = R"(
ENTRY main {
  p = TYPE[@A,@B] parameter(0)<0:2>
  q = TYPE[@A,@B] copy(p)<1:2>
  r = TYPE[@B,@A] transpose(q), dimensions={1,0}<2:2>
  ROOT t = (TYPE[@A,@B], TYPE[@B,@A]) tuple(q, r)
}
)";
constexpr char kSums[] = R"(
ENTRY main {
  p = TYPE[@A,@B] parameter(0)<0:2>
  q = TYPE[@B,@A] parameter(1)<1:2>
  ROOT d = TYPE[@A,@A] dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}<2:2>
}
)";

TEST(GroupCollectives, EveryMoveStaysTheSameByWhatStandsForIt) {
  for (const char* set : kSets) {
    SCOPED_TRACE(set);
    for (const char* type : {"f32", "pred", "c64"}) {
      VerifyFamily({.text = absl::StrReplaceAll(kMoves, {{"TYPE", type}}),
                    .sizes = {{{'A', 8}, {'B', 12}}, {{'A', 5}, {'B', 3}}},
                    .meshes = {{{4, 2}}, {{6}}},
                    .max_cases = 24,
                    .options = On(absl::StrCat("collectives=", set)),
                    .no_fallback = true});
    }
    for (const char* type : {"f32"}) {
      VerifyFamily({.text = absl::StrReplaceAll(kSums, {{"TYPE", type}}),
                    .sizes = {{{'A', 8}, {'B', 16}}, {{'A', 3}, {'B', 5}}},
                    .meshes = {{{4, 2}}, {{6}}},
                    .max_cases = 24,
                    .options = On(absl::StrCat("collectives=", set)),
                    .no_fallback = true});
    }
  }
}

// Bytes of a program over 4 devices, where only these count.
double Bytes(const std::string& body, const std::string& cost) {
  const auto p = Done(body, 4, On(absl::StrCat(cost, ",latency=1e-15")));
  double bytes = 0;
  for (const CollectiveRecord& r : p->local.collectives) bytes += r.bytes_moved;
  return bytes;
}

TEST(GroupCollectives, SendWhatTheirWaySends) {
  constexpr char kGather[] = R"(
  x = f32[1024] parameter(0), sharding={devices=[4]<=[4]}
  ROOT y = f32[1024] copy(x), sharding={replicated}
)";
  for (const auto& [has, bytes] : {std::pair("all-gather", 3072.0),
                                   {"all-to-all", 3072.0},
                                   {"collective-permute", 3072.0},
                                   {"all-reduce", 6144.0}}) {
    EXPECT_EQ(Bytes(kGather, absl::StrCat("collectives=", has)), bytes) << has;
  }
  constexpr char kSum[] = R"(
  x = f32[1024,1024] parameter(0), sharding={devices=[1,4]<=[4]}
  w = f32[1024,8] parameter(1), sharding={devices=[4,1]<=[4]}
  ROOT y = f32[1024,8] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}, sharding={replicated}
)";
  for (const auto& [has, bytes] : {std::pair("all-reduce", 49152.0),
                                   {"all-to-all", 49152.0},
                                   {"collective-permute", 49152.0},
                                   {"all-gather+reduce-scatter", 49152.0},
                                   {"all-gather", 98304.0}}) {
    EXPECT_EQ(Bytes(kSum, absl::StrCat("collectives=", has)), bytes) << has;
  }
}

// Axes of a mesh whose devices are in no regular order have groups that are no grid.
constexpr char kScattered[] = R"(HloModule m, num_partitions=8
sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b)
}
ENTRY main {
  x = f32[16,8] parameter(0), sharding={devices=[4,2]0,3,5,2,7,1,6,4}
  zero = f32[] constant(0)
  g = f32[16,8] sine(x), sharding={devices=[4,1,2]0,3,5,2,7,1,6,4 last_tile_dim_replicate}
  s = f32[16] reduce(x, zero), dimensions={1}, to_apply=sum
  ROOT t = (f32[16,8], f32[16]) tuple(g, s), sharding={{devices=[4,1,2]0,3,5,2,7,1,6,4 last_tile_dim_replicate}, {devices=[4,2]0,3,5,2,7,1,6,4 last_tile_dim_replicate}}
}
)";

TEST(GroupCollectives, RunOverGridsOnly) {
  EXPECT_EQ(Verified(kScattered, "groups=even"),
            (std::set{Opcode::kAllGather, Opcode::kAllReduce}));
  EXPECT_EQ(Verified(kScattered, "groups=grid"), (std::set{Opcode::kCollectivePermute}));
  // Without permutes all devices are gathered, which are a grid.
  EXPECT_EQ(Verified(kScattered, "groups=grid,collectives=all-gather+all-reduce"),
            (std::set{Opcode::kAllGather}));
  EXPECT_EQ(Verified(kScattered, "groups=grid,collectives=all-reduce"),
            (std::set{Opcode::kAllReduce}));
}

// Collectives that a program has itself, in a manual region of 4 devices.
std::string Region(absl::string_view op) {
  return absl::StrReplaceAll(R"(HloModule m, num_partitions=4
sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b)
}
odd {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] subtract(a, b)
}
ENTRY main {
  p = f32[16,8] parameter(0), sharding={devices=[4,1]<=[4]}
  c = f32[16,8] custom-call(p), custom_call_target="Sharding", sharding={devices=[4,1]<=[4]}
  x = f32[4,8] custom-call(c), custom_call_target="SPMDFullToShardShape", sharding={manual}
  OP
  o = f32[4,8] copy(y), sharding={manual}
  ROOT f = f32[16,8] custom-call(o), custom_call_target="SPMDShardToFullShape", sharding={devices=[4,1]<=[4]}
}
)",
                             {{"OP", op}});
}

constexpr const char* kOwn[] = {
    "y = f32[4,8] all-reduce(x), channel_id=1, replica_groups={{0,2},{1,3}}, "
    "use_global_device_ids=true, to_apply=sum, sharding={manual}",
    "y = f32[4,8] all-to-all(x), channel_id=1, replica_groups={{3,1,0,2}}, dimensions={1}, "
    "sharding={manual}",
    "y = f32[4,8] collective-permute(x), channel_id=1, source_target_pairs={{0,2},{2,1}}, "
    "sharding={manual}",
    "y = f32[4,8] collective-broadcast(x), channel_id=1, replica_groups={{2,0,1}}, "
    "sharding={manual}",
    "g = f32[4,16] all-gather(x), channel_id=1, replica_groups={{0,3},{1,2}}, dimensions={1}, "
    "use_global_device_ids=true, sharding={manual}\n"
    "  y = f32[4,8] reduce-scatter(g), channel_id=2, replica_groups={{0,3},{1,2}}, "
    "dimensions={1}, use_global_device_ids=true, to_apply=sum, sharding={manual}"};

TEST(GroupCollectives, StandForTheProgramsOwn) {
  for (const char* op : kOwn) {
    for (const char* set : kSets) {
      EXPECT_FALSE(Verified(Region(op), absl::StrCat("collectives=", set)).empty());
    }
  }
}

TEST(GroupCollectives, AllReducesOverUnevenGroupsStayWhereTheBackendHasThem) {
  const std::string text = Region(
      "y = f32[4,8] all-reduce(x), channel_id=1, replica_groups={{0,2,1},{3}}, "
      "use_global_device_ids=true, to_apply=sum, sharding={manual}");
  EXPECT_EQ(Verified(text, "collectives=all-reduce"), (std::set{Opcode::kAllReduce}));
  const absl::Status status = PartitionText(text, On("groups=even")).status();
  EXPECT_THAT(std::string(status.message()),
              testing::AllOf(HasSubstr("E214"), HasSubstr("groups that are even"),
                             HasSubstr("all-reduce over other groups")));
}

TEST(GroupCollectives, WhatNothingStandsForIsE214) {
  const absl::Status status =
      PartitionText(Region("y = f32[4,8] all-reduce(x), channel_id=1, replica_groups={{0,1,2,3}}, "
                           "use_global_device_ids=true, to_apply=odd, sharding={manual}"),
                    On("collectives=all-gather"))
          .status();
  EXPECT_THAT(std::string(status.message()),
              testing::AllOf(HasSubstr("E214"), HasSubstr("at %"), HasSubstr("of all-gather"),
                             HasSubstr("found all-reduce")));
}

}  // namespace
}  // namespace shardcall
