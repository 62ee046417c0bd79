// SPDX-License-Identifier: Apache-2.0
// Shardings that are chosen for the whole program, in place of those that are propagated.
#include "shardcall/partitioner/spmd/states/cheaper_states.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "shardcall/partitioner/api/report.h"
#include "shardcall/partitioner/propagation/reasons.h"
#include "tests/support/verify_text.h"

namespace shardcall {
namespace {

using testing::HasSubstr;

TextOptions Searching(StateSearch search = StateSearch::kSmall) {
  TextOptions options;
  options.search = search;
  return options;
}

std::unique_ptr<PartitionedProgram> Partitioned(const std::string& text,
                                                const TextOptions& options = Searching()) {
  auto p = PartitionText(text, options);
  EXPECT_TRUE(p.ok()) << p.status();
  return *std::move(p);
}

double Bytes(const std::string& text, StateSearch search = StateSearch::kSmall) {
  return TotalBytesMoved(Partitioned(text, Searching(search))->local);
}

std::string ShardingOf(const PartitionedProgram& p, absl::string_view name) {
  const Program& program = p.global->program;
  for (int n = 0; n < program.module.num_instructions(); ++n) {
    if (program.module.instr(InstrId(n)).name != name) continue;
    return p.global->shardings.sharding[program.leaves.leaf(InstrId(n)).value]->ToString();
  }
  return "none";
}

// A sum over a sharded contraction, to which a sharded value is added after other ops.
constexpr char kSum[] = R"(HloModule m, num_partitions=8
ENTRY main {
  x = f32[1024,4096] parameter(0), sharding={devices=[1,8]<=[8]}
  w = f32[4096,1024] parameter(1), sharding={devices=[8,1]<=[8]}
  v = f32[1024,1024] parameter(2), sharding={devices=[8,1]<=[8]}
  p = f32[1024,1024] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  t = f32[1024,1024] tanh(p)
  s = f32[1024,1024] multiply(t, t)
  ROOT r = f32[1024,1024] dot(s, v), lhs_contracting_dims={1}, rhs_contracting_dims={1}, sharding={devices=[1,8]<=[8]}
})";

// Annotations of one value whose results are read by columns: nothing else need be made of it.
TEST(CheaperStates, WhatNobodyTakesOfAnAnnotationIsNotSavedByAnotherChoice) {
  EXPECT_LE(Bytes(R"(HloModule m, num_partitions=8
ENTRY main {
  x = f32[1024,2048] parameter(0), sharding={devices=[8,1]<=[8]}
  y = f32[1024,2048] sine(x)
  rows = f32[1024,2048] custom-call(y), custom_call_target="Sharding", sharding={devices=[8,1]<=[8]}
  columns = f32[1024,2048] custom-call(y), custom_call_target="Sharding", sharding={devices=[1,8]<=[8]}
  whole = f32[1024,2048] custom-call(y), custom_call_target="Sharding", sharding={replicated}
  a = f32[1024,2048] add(rows, columns)
  b = f32[1024,2048] add(columns, whole)
  d = f32[1024,2048] add(a, b)
  ROOT e = f32[1024,2048] multiply(d, d), sharding={devices=[1,8]<=[8]}
})"),
            1024 * 2048 * 4 / 8 * 7 / 8);
}

// Rows from 1, 4, .., 16 rows on, whose halos are exchanged as one in the end. The plan counts
// each, and would gather the array in place of them.
TEST(CheaperStates, WhatIsExchangedOnceForSeveralOpsIsNotGathered) {
  std::string text = R"(HloModule m, num_partitions=8
ENTRY main {
  x = f32[64,8] parameter(0), sharding={devices=[4,1,2]<=[8] last_tile_dim_replicate}
  sum0 = f32[64,8] add(x, x)
)";
  constexpr int kRolls = 6;
  for (int k = 0; k < kRolls; ++k) {
    const int rows = 1 + 3 * k;
    absl::StrAppend(&text, "  low", k, " = f32[", 64 - rows, ",8] slice(x), slice={[", rows,
                    ":64], [0:8]}\n  high", k, " = f32[", rows, ",8] slice(x), slice={[0:", rows,
                    "], [0:8]}\n  roll", k, " = f32[64,8] concatenate(low", k, ", high", k,
                    "), dimensions={0}\n  product", k, " = f32[64,8] multiply(roll", k, ", sum", k,
                    ")\n  sum", k + 1, " = f32[64,8] add(sum", k, ", product", k, ")\n");
  }
  absl::StrAppend(&text, "  ROOT r = f32[64,8] negate(sum", kRolls,
                  "), sharding={devices=[4,1,2]<=[8] last_tile_dim_replicate}\n}\n");
  const auto p = Partitioned(text);
  EXPECT_EQ(TotalBytesMoved(p->local), 16 * 8 * 4);  // the longest halo
  EXPECT_TRUE(p->global->shardings.propagated.empty());
}

// A sum over devices of what a loop does not change is reduced before the loop.
TEST(CheaperStates, SumsThatAreTheSameInAllIterationsAreReducedOnce) {
  constexpr char kLoop[] = R"(HloModule m, num_partitions=8
add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }
body {
  c = (s32[], f32[64], f32[32,64]) parameter(0)
  i = s32[] get-tuple-element(c), index=0
  one = s32[] constant(1)
  next = s32[] add(i, one)
  y = f32[64] get-tuple-element(c), index=1
  x = f32[32,64] get-tuple-element(c), index=2
  zero = f32[] constant(0)
  sum = f32[64] reduce(x, zero), dimensions={0}, to_apply=add
  z = f32[64] multiply(y, sum)
  ROOT t = (s32[], f32[64], f32[32,64]) tuple(next, z, x)
}
condition {
  c = (s32[], f32[64], f32[32,64]) parameter(0)
  i = s32[] get-tuple-element(c), index=0
  trips = s32[] constant(16)
  ROOT l = pred[] compare(i, trips), direction=LT
}
ENTRY main {
  x = f32[32,64] parameter(0), sharding={devices=[4,1,2]<=[8] last_tile_dim_replicate}
  start = s32[] constant(0)
  zero = f32[] constant(0)
  y = f32[64] broadcast(zero), dimensions={}
  init = (s32[], f32[64], f32[32,64]) tuple(start, y, x)
  loop = (s32[], f32[64], f32[32,64]) while(init), condition=condition, body=body
  ROOT r = f32[64] get-tuple-element(loop), index=1, sharding={replicated}
})";
  for (const StateSearch search : {StateSearch::kNone, StateSearch::kSmall}) {
    const auto p = Partitioned(kLoop, Searching(search));
    EXPECT_EQ(TotalBytesMoved(p->local), 2 * 3.0 / 4 * 64 * 4);  // one all-reduce over 4 devices
    EXPECT_EQ(p->plan.bytes, TotalBytesMoved(p->local));
  }
}

TEST(CheaperStates, ASumIsScatteredAndWhatFollowsIsComputedInShards) {
  const double whole = 4 * 1024 * 1024 * 7 / 8;
  EXPECT_EQ(Bytes(kSum, StateSearch::kNone), 2 * whole);  // an all-reduce
  const auto p = Partitioned(kSum);
  EXPECT_EQ(TotalBytesMoved(p->local), 2 * whole);
  EXPECT_EQ(CountOpcode(*p, Opcode::kReduceScatter), 1);
  EXPECT_EQ(CountOpcode(*p, Opcode::kAllReduce), 0);
  EXPECT_EQ(CountOpcode(*p, Opcode::kAllGather), 1);  // of s, where the product needs it
  EXPECT_NE(ShardingOf(*p, "t"),
            ShardingOf(*Partitioned(kSum, Searching(StateSearch::kNone)), "t"));
}

TEST(CheaperStates, ResultsAreThoseOfOneDevice) {
  for (const StateSearch search : {StateSearch::kSmall, StateSearch::kAll}) {
    EXPECT_EQ(
        WhyNotEqual(absl::StrReplaceAll(kSum, {{"1024", "16"}, {"4096", "32"}, {"tanh", "negate"}}),
                    Searching(search)),
        "");
  }
}

// The same in a region that is manual over another axis: that axis stays as it is.
std::string SumInRegion(absl::string_view m, absl::string_view k) {
  const auto enter = [](absl::string_view value, absl::string_view from, absl::string_view to,
                        absl::string_view sharding) {
    const std::string open = R"(, backend_config="unspecified_dims=[0,1]")";
    return absl::StrCat(
        "  s", value, " = ", from, " custom-call(g", value,
        R"(), custom_call_target="Sharding", sharding=)", sharding, open, "\n  ", value, " = ", to,
        " custom-call(s", value, R"(), custom_call_target="SPMDFullToShardShape", )",
        "sharding={devices=[1,1,2,4]<=[8] last_tile_dims={manual, replicated}}", open, "\n");
  };
  return absl::StrReplaceAll(
      absl::StrCat(
          R"(HloModule m, num_partitions=8
ENTRY main {
  gx = f32[@2M,@K] parameter(0), sharding={devices=[2,4]<=[8]}
  gw = f32[@K,@M] parameter(1), sharding={devices=[4,1,2]<=[2,4]T(1,0) last_tile_dim_replicate}
  gv = f32[@M,@M] parameter(2), sharding={devices=[4,1,2]<=[2,4]T(1,0) last_tile_dim_replicate}
)",
          enter("x", "f32[@2M,@K]", "f32[@M,@K]", "{devices=[2,1,4]<=[8] last_tile_dim_replicate}"),
          enter("w", "f32[@K,@M]", "f32[@K,@M]", "{replicated}"),
          enter("v", "f32[@M,@M]", "f32[@M,@M]", "{replicated}"), R"(
  p = f32[@M,@M] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  t = f32[@M,@M] negate(p)
  s = f32[@M,@M] multiply(t, t)
  d = f32[@M,@M] dot(s, v), lhs_contracting_dims={1}, rhs_contracting_dims={1}
  c = f32[@M,@M] custom-call(d), custom_call_target="Sharding", sharding={devices=[1,4,2]<=[2,4]T(1,0) last_tile_dims={manual}}
  r = f32[@2M,@M] custom-call(c), custom_call_target="SPMDShardToFullShape", sharding={devices=[2,1,4]<=[8] last_tile_dim_replicate}, backend_config="unspecified_dims=[0,1]"
  ROOT o = f32[@2M,@M] copy(r), sharding={devices=[2,4]<=[8]}
})"),
      {{"@2M", m == "16" ? "32" : "2048"}, {"@M", m}, {"@K", k}});
}

TEST(CheaperStates, InAPartlyManualRegionOfTheFreeAxes) {
  const std::string text = SumInRegion("1024", "4096");
  const double whole = 4 * 1024 * 1024 * 3 / 4;
  EXPECT_EQ(Bytes(text, StateSearch::kNone), 2 * whole);
  const auto p = Partitioned(text);
  EXPECT_EQ(TotalBytesMoved(p->local), 2 * whole);
  EXPECT_EQ(CountOpcode(*p, Opcode::kReduceScatter), 1);
  EXPECT_EQ(CountOpcode(*p, Opcode::kAllReduce), 0);
  EXPECT_EQ(WhyNotEqual(SumInRegion("16", "32"), Searching()), "");
}

// Attention whose sequences are cut, with a mask for the parts of sequences that are packed. To cut
// the batch in their place moves q, k, v and the result, each once, by an all-to-all; but the
// states of all values between have to change at once.
TEST(CheaperStates, AnAxisMovesToTheBatchOfProducts) {
  std::ifstream file(absl::StrCat(SHARDCALL_SOURCE_DIR, "/tests/data/spmd/packed_attention.hlo"));
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  ASSERT_FALSE(text.empty());
  const double shard = 4 * 512 * 8 * 32 * 4 / 8;
  EXPECT_GE(Bytes(text, StateSearch::kNone), 2 * 3 * shard);  // k and v are gathered
  EXPECT_LE(Bytes(text), 4 * 3 * shard / 4 + 2048);
}

TEST(CheaperStates, WhatIsAnnotatedStaysAsItIs) {
  const std::string text =
      absl::StrReplaceAll(kSum, {{"tanh(p)", "tanh(p), sharding={replicated}"}});
  const auto p = Partitioned(text);
  EXPECT_EQ(ShardingOf(*p, "t"), "[{}, {}]");
  EXPECT_EQ(TotalBytesMoved(p->local), 2 * 4.0 * 1024 * 1024 * 7 / 8);
}

// Or an open result would be a surprise: gradients of replicated weights are replicated.
TEST(CheaperStates, AnOpenResultIsWhatIsPropagated) {
  const std::string text = absl::StrReplaceAll(
      kSum,
      {{"num_partitions=8", "num_partitions=8, allow_spmd_sharding_propagation_to_output={true}"},
       {"ROOT r = f32[1024,1024] dot(s, v), lhs_contracting_dims={1}, "
        "rhs_contracting_dims={1}, sharding={devices=[1,8]<=[8]}",
        "ROOT r = f32[1024,1024] negate(s)"}});
  const auto p = Partitioned(text);
  EXPECT_EQ(p->global->shardings.outputs[0]->ToString(), "[{}, {}]");
}

TEST(CheaperStates, NothingIsChosenAtABarrierOfPropagation) {
  const std::string text = absl::StrReplaceAll(
      kSum, {{"  t = f32[1024,1024] tanh(p)",
              "  t = f32[1024,1024] custom-call(p), custom_call_target=\"ShardBarrierTo\", "
              "custom_call_has_side_effect=true"}});
  const auto p = Partitioned(text);
  EXPECT_EQ(ShardingOf(*p, "p"), "[{}, {}]");
  EXPECT_EQ(ShardingOf(*p, "t"), "[{}, {}]");
}

// Three ops read a small array, each of which would gather it or its own result: latency counts.
constexpr char kSmallArray[] = R"(HloModule m, num_partitions=8
ENTRY main {
  a = f32[512] parameter(0), sharding={devices=[8]<=[8]}
  b = f32[512] parameter(1)
  h = f32[256] slice(a), slice={[0:256]}
  c = f32[512] multiply(b, a)
  d = f32[512] multiply(c, a)
  k = f32[256] custom-call(h), custom_call_target="Sharding", sharding={devices=[8]<=[8]}
  e = f32[512] custom-call(d), custom_call_target="Sharding", sharding={replicated}
  ROOT r = (f32[256], f32[512]) tuple(k, e)
})";

TEST(CheaperStates, ASmallArrayIsGatheredOnceForAll) {
  const auto before = Partitioned(kSmallArray, Searching(StateSearch::kNone)),
             after = Partitioned(kSmallArray);
  EXPECT_EQ(before->local.collectives.size(), 3u);
  ASSERT_EQ(after->local.collectives.size(), 1u);
  EXPECT_EQ(after->local.collectives[0].opcode, Opcode::kAllGather);
  EXPECT_EQ(WhyNotEqual(kSmallArray, Searching()), "");
}

// The carried array is cut by what follows the loop; inside it a product needs it whole.
TEST(CheaperStates, ALoopCarriesWhatItsBodyNeeds) {
  const std::string text = R"(HloModule m, num_partitions=8
body {
  b = (s32[], f32[256,256]) parameter(0)
  i = s32[] get-tuple-element(b), index=0
  one = s32[] constant(1)
  n = s32[] add(i, one)
  c = f32[256,256] get-tuple-element(b), index=1
  t = f32[256,256] transpose(c), dimensions={1,0}
  s = f32[256,256] add(c, t)
  ROOT r = (s32[], f32[256,256]) tuple(n, s)
}
condition {
  b = (s32[], f32[256,256]) parameter(0)
  i = s32[] get-tuple-element(b), index=0
  trips = s32[] constant(16)
  ROOT l = pred[] compare(i, trips), direction=LT
}
ENTRY main {
  x = f32[256,256] parameter(0), sharding={devices=[8,1]<=[8]}
  zero = s32[] constant(0)
  init = (s32[], f32[256,256]) tuple(zero, x)
  loop = (s32[], f32[256,256]) while(init), condition=condition, body=body
  y = f32[256,256] get-tuple-element(loop), index=1
  ROOT z = f32[256,256] negate(y), sharding={devices=[8,1]<=[8]}
})";
  const double shard = 4 * 256 * 256 / 8 * 7.0 / 8;
  EXPECT_EQ(Bytes(text, StateSearch::kNone), 16 * shard);  // an all-to-all an iteration
  EXPECT_EQ(Bytes(text), 8 * shard);                       // one gather
  EXPECT_EQ(WhyNotEqual(text, Searching()), "");
}

TEST(CheaperStates, LargeProgramsAreSearchedOnDemand) {
  std::string chain = "  n0 = f32[1024,1024] negate(p)\n";
  for (int k = 1; k <= kMostInSmallProgram; ++k) {
    absl::StrAppend(&chain, "  n", k, " = f32[1024,1024] negate(n", k - 1, ")\n");
  }
  const std::string text =
      absl::StrReplaceAll(kSum, {{"  t = ", chain + "  t = "},
                                 {"tanh(p)", absl::StrCat("tanh(n", kMostInSmallProgram, ")")}});
  EXPECT_TRUE(Partitioned(text)->global->shardings.propagated.empty());
  const auto all = Partitioned(text, Searching(StateSearch::kAll));
  EXPECT_GT(all->global->shardings.propagated.size(), kMostInSmallProgram);
  EXPECT_EQ(CountOpcode(*all, Opcode::kReduceScatter), 1);
}

TEST(CheaperStates, AnOrderOfConflictsThatIsGivenMeansWhatIsPropagated) {
  PartitionOptions options = ToRunOptions(Searching()).partition;
  options.conflicts = ConflictOrder::kWait;
  const auto p = Partition(*ParseText(kSum), options);
  ASSERT_TRUE(p.ok()) << p.status();
  EXPECT_TRUE((*p)->global->shardings.propagated.empty());
}

// Both FFTs run along whole rows and whole columns: the 513 columns between them are on 8 devices,
// though these do not divide them.
TEST(CheaperStates, UnevenShardsAreTriedWhereLittleOfThemIsPadding) {
  constexpr char kFfts[] = R"(HloModule m, num_partitions=8
ENTRY main {
  a = f32[1024,1024] parameter(0), sharding={devices=[8,1]<=[8]}
  f = c64[1024,513] fft(a), fft_type=RFFT, fft_length={1024,1024}
  m = c64[1024,513] negate(f)
  ROOT r = f32[1024,1024] fft(m), fft_type=IRFFT, fft_length={1024,1024}, sharding={devices=[8,1]<=[8]}
})";
  constexpr double kExchange = 8.0 * 128 * 520 * 7 / 8;
  EXPECT_EQ(Bytes(kFfts, StateSearch::kNone), 4 * kExchange);
  EXPECT_EQ(Bytes(kFfts), 2 * kExchange);
  EXPECT_EQ(ShardingOf(*Partitioned(kFfts), "m"), "[{}, {\"x0\"}]");
}

TEST(CheaperStates, ReportAndReasonsSayWhatWasChosen) {
  const auto p = Partitioned(kSum);
  Reasons reasons(p->global->program, p->global->shardings);
  const auto chosen = nlohmann::json::parse(ReportJson(*p, {}))["chosen_shardings"];
  EXPECT_LT(chosen["seconds"], chosen["propagated_seconds"]);
  ASSERT_EQ(chosen["values"].size(), 2u);  // p and t; s is gathered as it is made
  EXPECT_EQ(chosen["values"][1]["name"], "t");
  EXPECT_EQ(chosen["values"][1]["propagated"], "[{}, {}]");
  EXPECT_EQ(chosen["values"][1]["chosen"], ShardingOf(*p, "t"));
  EXPECT_THAT(Explain(*p, {}, ExplainFormat::kText),
              HasSubstr("chosen shardings: 2 values, other than propagated: "));
  for (const auto& [leaf, before] : p->global->shardings.propagated) {
    EXPECT_EQ(reasons.Of(leaf),
              "chosen: the program takes less time so than with [{}, {}], which is propagated");
  }
}

TEST(CheaperStates, EqualModulesAreCutAlike) {
  const std::string renamed = absl::StrReplaceAll(kSum, {{"  x = ", "  zz = "},
                                                         {"dot(x, w)", "dot(zz, w)"},
                                                         {"  t = ", "  aa = "},
                                                         {"(t, t)", "(aa, aa)"}});
  EXPECT_EQ(ShardingOf(*Partitioned(renamed), "aa"), ShardingOf(*Partitioned(kSum), "t"));
}

TEST(CheaperStates, SearchesHaveNames) {
  for (const StateSearch s : {StateSearch::kNone, StateSearch::kSmall, StateSearch::kAll}) {
    EXPECT_EQ(*ParseStateSearch(StateSearchName(s)), s);
  }
  EXPECT_THAT(ParseStateSearch("deep"), Fails("E213", "none, small or all"));
}

// A scan along a sharded dimension, whose arrays have another one that can take its axis.
constexpr char kScan[] = R"(HloModule m, num_partitions=8
body {
  t = (s32[], f32[8,64], f32[256,8,64], f32[256,8,64], f32[256,8,64], f32[256,8,64]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  h = f32[8,64] get-tuple-element(t), index=1
  ys = f32[256,8,64] get-tuple-element(t), index=2
  as = f32[256,8,64] get-tuple-element(t), index=3
  bs = f32[256,8,64] get-tuple-element(t), index=4
  cs = f32[256,8,64] get-tuple-element(t), index=5
  one = s32[] constant(1)
  none = s32[] constant(0)
  j = s32[] add(i, one)
  as1 = f32[1,8,64] dynamic-slice(as, i, none, none), dynamic_slice_sizes={1,8,64}
  bs1 = f32[1,8,64] dynamic-slice(bs, i, none, none), dynamic_slice_sizes={1,8,64}
  cs1 = f32[1,8,64] dynamic-slice(cs, i, none, none), dynamic_slice_sizes={1,8,64}
  a = f32[8,64] reshape(as1)
  b = f32[8,64] reshape(bs1)
  c = f32[8,64] reshape(cs1)
  m = f32[8,64] multiply(h, a)
  s = f32[8,64] add(m, b)
  g = f32[8,64] tanh(s)
  y = f32[8,64] multiply(g, c)
  ys1 = f32[1,8,64] reshape(y)
  zs = f32[256,8,64] dynamic-update-slice(ys, ys1, i, none, none)
  ROOT r = (s32[], f32[8,64], f32[256,8,64], f32[256,8,64], f32[256,8,64], f32[256,8,64]) tuple(j, g, zs, as, bs, cs)
}
more {
  t = (s32[], f32[8,64], f32[256,8,64], f32[256,8,64], f32[256,8,64], f32[256,8,64]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  n = s32[] constant(256)
  ROOT c = pred[] compare(i, n), direction=LT
}
ENTRY main {
  a = f32[8,256,64] parameter(0), sharding={devices=[2,4,1]<=[4,2]T(1,0)}
  b = f32[8,256,64] parameter(1), sharding={devices=[2,4,1]<=[4,2]T(1,0)}
  c = f32[8,256,64] parameter(2), sharding={devices=[2,4,1]<=[4,2]T(1,0)}
  as = f32[256,8,64] transpose(a), dimensions={1,0,2}
  bs = f32[256,8,64] transpose(b), dimensions={1,0,2}
  cs = f32[256,8,64] transpose(c), dimensions={1,0,2}
  none = s32[] constant(0)
  zero = f32[] constant(0)
  h = f32[8,64] broadcast(zero), dimensions={}
  ys = f32[256,8,64] broadcast(zero), dimensions={}
  t = (s32[], f32[8,64], f32[256,8,64], f32[256,8,64], f32[256,8,64], f32[256,8,64]) tuple(none, h, ys, as, bs, cs)
  l = (s32[], f32[8,64], f32[256,8,64], f32[256,8,64], f32[256,8,64], f32[256,8,64]) while(t), condition=more, body=body
  y = f32[256,8,64] get-tuple-element(l), index=2
  ROOT r = f32[8,256,64] transpose(y), dimensions={1,0,2}, sharding={devices=[2,4,1]<=[4,2]T(1,0)}
})";

// One value in another state gains nothing; all that the loop reads and makes have to follow.
TEST(CheaperStates, AnAxisMovesThroughAllThatALoopReadsAndMakes) {
  // Three arrays are brought to the loop by all-to-alls over four devices, and one back from it.
  EXPECT_EQ(Bytes(kScan), 4 * 3.0 / 4 * 8 * 256 * 64 * 4 / 8);
}

// A stack of 32 slices, sharded by a dimension of 21 over six devices, that a loop adds up: the sum
// is brought to where it is wanted, not the stack, though its shards have a seventh of padding.
constexpr char kStack[] = R"(HloModule m, num_partitions=6
body {
  t = (s32[], f32[32,32,21,32], f32[1,32,21,32]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  x = f32[32,32,21,32] get-tuple-element(t), index=1
  a = f32[1,32,21,32] get-tuple-element(t), index=2
  zero = s32[] constant(0)
  s = f32[1,32,21,32] dynamic-slice(x, i, zero, zero, zero), dynamic_slice_sizes={1,32,21,32}
  b = f32[1,32,21,32] add(a, s)
  one = s32[] constant(1)
  j = s32[] add(i, one)
  ROOT r = (s32[], f32[32,32,21,32], f32[1,32,21,32]) tuple(j, x, b)
}
more {
  t = (s32[], f32[32,32,21,32], f32[1,32,21,32]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  n = s32[] constant(32)
  ROOT r = pred[] compare(i, n), direction=LT
}
ENTRY main {
  x = f32[32,32,21,32] parameter(0), sharding={devices=[1,1,6,1]<=[6]}
  none = f32[] constant(0)
  a = f32[1,32,21,32] broadcast(none), dimensions={}
  zero = s32[] constant(0)
  t = (s32[], f32[32,32,21,32], f32[1,32,21,32]) tuple(zero, x, a)
  l = (s32[], f32[32,32,21,32], f32[1,32,21,32]) while(t), condition=more, body=body
  s = f32[1,32,21,32] get-tuple-element(l), index=2
  ROOT r = f32[1,32,21,32] negate(s), sharding={devices=[1,1,1,6]<=[6]}
})";

TEST(CheaperStates, AnArgumentsPaddingIsNoReasonToMoveIt) {
  EXPECT_LT(Bytes(kStack), 32 * 21 * 32 * 4);  // of the sum; the stack is 32 times as large
}

}  // namespace
}  // namespace shardcall
