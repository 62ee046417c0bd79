// SPDX-License-Identifier: Apache-2.0
// The reshard planner: chains that start and end right, never below the lower
// bound, and the collective one would choose by hand.
#include "shardcall/sharding/reshard/reshard.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "shardcall/sharding/reshard/reshard_search.h"

namespace shardcall {
namespace {

class ReshardTest : public testing::Test {
 protected:
  // A mesh with axes a, b, .. of these sizes.
  void UseMesh(std::vector<int64_t> sizes) {
    int64_t n = 1;
    for (int64_t s : sizes) n *= s;
    mesh_ = InternBaseMesh(context_, sizes, DeviceOrder::Identity(n));
    std::vector<BaseMesh::NamedAxis> names;
    for (int k = 0; k < mesh_->num_axes(); ++k) {
      names.push_back({std::string(1, static_cast<char>('a' + k)), {mesh_->FullAxis(k)}});
    }
    mesh_->SetNames("mesh", names);
  }
  AxisList Axes(const std::string& text) {
    AxisList out;
    for (char c : text) out.push_back(mesh_->FullAxis(c - 'a'));
    return out;
  }
  // "ab," is dim 0 over {a, b}, dim 1 whole; "a,+b" is partial over b.
  const Sharding* S(const std::string& text) {
    const std::vector<std::string> parts = absl::StrSplit(text, '+');
    const std::vector<std::string> dims = absl::StrSplit(parts[0], ',');
    ShardingBuilder b(mesh_, static_cast<int>(dims.size()));
    for (size_t d = 0; d < dims.size(); ++d) b.dims[d] = Axes(dims[d]);
    if (parts.size() > 1) b.partial = Axes(parts[1]);
    return b.Intern(context_);
  }
  // The same, partial by xor.
  const Sharding* Xor(const std::string& text) {
    ShardingBuilder b(*S(text));
    b.partial_op = PartialOp::kXor;
    return b.Intern(context_);
  }
  const Shape* F32(std::vector<int64_t> dims) {
    return context_.WithDefaultLayout(context_.MakeArray(ElementType::kF32, dims));
  }
  const ReshardPlan& Plan(std::vector<int64_t> dims, const std::string& from,
                          const std::string& to) {
    return PlanReshard(context_, F32(std::move(dims)), S(from), S(to));
  }
  std::string Describe(std::vector<int64_t> dims, const std::string& from, const std::string& to) {
    // Without the quotes around axis names.
    return absl::StrReplaceAll(DescribePlan(Plan(std::move(dims), from, to)), {{"\"", ""}});
  }

  Context context_;
  BaseMesh* mesh_ = nullptr;
};

std::vector<std::string> DimPairs() {
  return {",", "a,", "b,", "ab,", "ba,", ",a", ",b", ",ab", ",ba", "a,b", "b,a"};
}

TEST_F(ReshardTest, EveryPlanIsAChainFromOneEndToTheOther) {
  for (const std::vector<int64_t>& sizes : {std::vector<int64_t>{2, 2}, {4, 2}, {3, 2}}) {
    UseMesh(sizes);
    std::vector<std::string> froms = DimPairs();
    for (const char* partial : {",+a", ",+ab", "a,+b", ",a+b", "b,+a", ",b+a"})
      froms.push_back(partial);
    for (const std::string& from : froms) {
      for (const std::string& to : DimPairs()) {
        for (int64_t d0 : {8, 10, 7, 3, 1}) {
          for (int64_t d1 : {8, 10, 7, 3, 1}) {
            SCOPED_TRACE(testing::Message() << from << " -> " << to << " f32[" << d0 << "," << d1
                                            << "] mesh " << sizes[0] << "x" << sizes[1]);
            const ReshardPlan& plan = Plan({d0, d1}, from, to);
            const Sharding* at = S(from);
            double bytes = 0;
            for (const Move& m : plan.moves) {
              ASSERT_EQ(m.before, at);
              ASSERT_NE(m.after, nullptr);
              ASSERT_GE(m.bytes, 0);
              bytes += m.bytes;
              at = m.after;
            }
            ASSERT_EQ(at, S(to));
            ASSERT_DOUBLE_EQ(bytes, plan.bytes);
            ASSERT_GE(plan.bytes, plan.lower_bound);
            ASSERT_EQ(plan.moves.empty(), from == to);
          }
        }
      }
    }
  }
}

// Cut first, though in another order than the target's: the permute then sends small shards.
TEST_F(ReshardTest, AFinerShardIsCutBeforeItIsPermuted) {
  UseMesh({4, 4});
  EXPECT_EQ(Describe({2048, 4096}, ",a", ",ba"),
            "slice dim 1 over {b}: 0 bytes\n"
            "collective-permute: 1572864 bytes\n");
}

// Axes of unlike sizes change places: half of a moves, so that the shard counts agree.
TEST_F(ReshardTest, PartsOfAnAxisMoveWhereThatSendsLess) {
  UseMesh({4, 2});
  EXPECT_EQ(Describe({4096, 8192}, "a,b", "b,a"),
            "collective-permute: 8388608 bytes\n"
            "all-to-all dim 0 to dim 1 over {a:(2)2}: 8388608 bytes\n");
}

// Devices that have more than a shard of the target cut it out first, along whichever axes they are
// alike, and most of them along axes that stay.
TEST_F(ReshardTest, ReplicasAreCutIntoShardsOfTheTargetBeforeTheseMove) {
  UseMesh({4, 2});
  EXPECT_EQ(Describe({512, 512}, ",b", "b,a"),
            "slice dim 1 over {a:(2)2}: 0 bytes\n"
            "slice dim 0 over {a:(1)2}: 0 bytes\n"
            "collective-permute: 65536 bytes\n");
  EXPECT_EQ(Describe({512, 512}, "b,", "a,"),
            "slice dim 0 over {a:(2)2}: 0 bytes\n"
            "collective-permute: 131072 bytes\n");
  EXPECT_EQ(Describe({512, 512}, "a,", "b,"),
            "collective-permute: 131072 bytes\n"
            "all-gather dim 0 over {a:(2)2}: 262144 bytes\n");
}

// One permute brings the shards to where an all-to-all of two axes makes the target of them.
TEST_F(ReshardTest, APermuteLeadsToAnAllToAllOfSeveralAxes) {
  UseMesh({2, 2, 2});
  EXPECT_EQ(Describe({512, 512}, "ac,", ",abc"),
            "slice dim 1 over {b}: 0 bytes\n"
            "collective-permute: 65536 bytes\n"
            "all-to-all dim 0 to dim 1 over {b, c}: 98304 bytes\n");
}

// In every dimension, with every tiling, and beside what is partial.
TEST_F(ReshardTest, WhatOneMoveDoesIsWhatTheSearchFinds) {
  int single = 0;
  for (const std::vector<int64_t>& sizes : {std::vector<int64_t>{2, 2}, {4, 2}, {3, 2}}) {
    UseMesh(sizes);
    std::vector<std::string> states = DimPairs();
    for (const char* partial : {",+a", ",+ab", "a,+b", ",a+b", "b,+a", ",b+a"}) {
      states.push_back(partial);
    }
    for (const std::string& from : states) {
      for (const std::string& to : states) {
        for (const std::vector<int64_t>& dims :
             {std::vector<int64_t>{8, 8}, {10, 7}, {7, 10}, {3, 1}, {1, 16}, {0, 8}}) {
          SCOPED_TRACE(testing::Message() << from << " -> " << to << " f32[" << dims[0] << ","
                                          << dims[1] << "] mesh " << sizes[0] << "x" << sizes[1]);
          const std::optional<Move> one = OneMove(F32(dims), S(from), S(to));
          if (!one.has_value()) continue;
          ++single;
          std::vector<Move> found;
          SearchReshard(context_, F32(dims), S(from), S(to), &found);
          if (one->kind == MoveKind::kAllGather && one->axes.size() > 1 &&
              dims[one->dim] % S(from)->num_shards(one->dim) != 0) {
            continue;  // in several moves, padding is not sent
          }
          ASSERT_EQ(found.size(), 1u);
          EXPECT_EQ(one->kind, found[0].kind);
          EXPECT_EQ(one->axes, found[0].axes);
          EXPECT_EQ(one->dim, found[0].dim);
          EXPECT_EQ(one->dim2, found[0].dim2);
          EXPECT_EQ(one->before, found[0].before);
          EXPECT_EQ(one->after, found[0].after);
          EXPECT_DOUBLE_EQ(one->bytes, found[0].bytes);
        }
      }
    }
  }
  EXPECT_GT(single, 300);
}

TEST_F(ReshardTest, SeveralGathersOrSlicesAreWhatTheSearchFinds) {
  const std::vector<std::string> states = {",,",   "a,b,c", "c,a,b", "a,b,", "a,,c", ",c,b",
                                           "ab,,", "ab,c,", ",ca,b", "a,,",  ",,c"};
  int several = 0;
  for (const std::vector<int64_t>& sizes : {std::vector<int64_t>{2, 2, 2}, {2, 4, 3}, {4, 3, 2}}) {
    UseMesh(sizes);
    for (const std::string& from : states) {
      for (const std::string& to : states) {
        for (const std::vector<int64_t>& dims :
             {std::vector<int64_t>{24, 24, 24}, {48, 240, 1200}, {24, 10, 24}, {0, 24, 24}}) {
          SCOPED_TRACE(testing::Message() << from << " -> " << to << " of " << dims[1]);
          std::vector<Move> moves, found;
          if (from == to || !MovesOfOneKind(context_, F32(dims), S(from), S(to), &moves)) continue;
          several += moves.size() > 1;
          SearchReshard(context_, F32(dims), S(from), S(to), &found);
          ASSERT_EQ(moves.size(), found.size());
          double ours = 0, theirs = 0;  // what is sent, and held on the way
          for (size_t k = 0; k < moves.size(); ++k) {
            EXPECT_EQ(moves[k].kind, found[k].kind);
            EXPECT_EQ(moves[k].before, k == 0 ? S(from) : moves[k - 1].after);
            ours +=
                moves[k].bytes + 1e-3 * static_cast<double>(LocalBytes(F32(dims), *moves[k].after));
            theirs +=
                found[k].bytes + 1e-3 * static_cast<double>(LocalBytes(F32(dims), *found[k].after));
          }
          EXPECT_EQ(moves.back().after, S(to));
          EXPECT_NEAR(ours, theirs, 1e-9 * theirs);
        }
      }
    }
  }
  EXPECT_GT(several, 100);
}

// One of eight shards has a row, the others padding: over the columns all have something to send.
TEST_F(ReshardTest, FewRowsAreGatheredByWayOfTheColumns) {
  UseMesh({8});
  const double row = 4 << 20;
  const ReshardPlan& one = PlanReshard(context_, F32({1, 1 << 20}), S("a,"), S(","));
  EXPECT_EQ(one.bytes, 2 * row * 7 / 8);
  EXPECT_EQ(one.collectives, 2);
  EXPECT_LE(PlanReshard(context_, F32({1, (1 << 20) + 1}), S("a,"), S(",")).bytes, 2 * row);
  // Of small arrays one collective takes less time, and of half of them no less is sent.
  EXPECT_EQ(PlanReshard(context_, F32({1, 256}), S("a,"), S(",")).collectives, 1);
  EXPECT_EQ(PlanReshard(context_, F32({5, 1 << 20}), S("a,"), S(",")).collectives, 1);
}

// Up to here a value need not be gathered whole: the dearest sensible chain is
// an all-reduce and an all-gather of everything.
TEST_F(ReshardTest, NoPlanCostsMoreThanGatheringEverything) {
  UseMesh({2, 2});
  for (const std::string& from : DimPairs()) {
    for (const std::string& to : DimPairs()) {
      for (int64_t d : {8, 10, 7, 3, 1}) {
        SCOPED_TRACE(testing::Message() << from << " -> " << to << " " << d);
        const double whole = Plan({d, 8}, from, ",").bytes;
        EXPECT_LE(Plan({d, 8}, from, to).bytes, whole);
      }
    }
  }
}

TEST_F(ReshardTest, EmptyArraysMoveNothing) {
  UseMesh({2, 2});
  for (const std::string& from : DimPairs()) {
    for (const std::string& to : DimPairs()) {
      EXPECT_EQ(Plan({0, 8}, from, to).bytes, 0) << from << " -> " << to;
      EXPECT_EQ(Plan({0, 0}, from, to).bytes, 0) << from << " -> " << to;
    }
  }
}

TEST_F(ReshardTest, PlansAreKept) {
  UseMesh({2, 2});
  EXPECT_EQ(&Plan({8, 8}, "a,", ",a"), &Plan({8, 8}, "a,", ",a"));
  EXPECT_NE(&Plan({8, 8}, "a,", ",a"), &Plan({8, 10}, "a,", ",a"));
}

TEST_F(ReshardTest, CuttingIsFree) {
  UseMesh({4, 2});
  EXPECT_EQ(Describe({8, 8}, ",", "a,b"),
            "slice dim 0 over {a}: 0 bytes\n"
            "slice dim 1 over {b}: 0 bytes\n");
  EXPECT_EQ(Plan({8, 8}, "a,", "ab,").bytes, 0);
  EXPECT_EQ(Plan({8, 8}, "a,", "a,b").bytes, 0);
}

TEST_F(ReshardTest, GatheringTakesTheMinorAxesOnly) {
  UseMesh({4, 2});
  EXPECT_EQ(Describe({16, 8}, "ab,", "a,"), "all-gather dim 0 over {b}: 64 bytes\n");
  EXPECT_EQ(Describe({16, 8}, "ab,", ","), "all-gather dim 0 over {a, b}: 448 bytes\n");
  EXPECT_EQ(Describe({16, 8}, "a,b", "a,"), "all-gather dim 1 over {b}: 64 bytes\n");
}

TEST_F(ReshardTest, WhatIsLargerOnTheWayThanAtBothEndsIsGatheredAndCut) {
  UseMesh({4, 2});
  // Three devices of one order and three of another have no shards in common.
  BaseMesh* other = InternBaseMesh(context_, {4, 2}, *DeviceOrder::List({0, 2, 4, 6, 1, 3, 5, 7}));
  ShardingBuilder to(other, 1);
  to.dims[0] = {other->FullAxis(1)};
  EXPECT_TRUE(
      GathersAndCuts(F32({16}), PlanReshard(context_, F32({16}), S("a"), to.Intern(context_))));
  EXPECT_FALSE(GathersAndCuts(F32({10}), Plan({10}, "ab", "a")));
  EXPECT_FALSE(GathersAndCuts(F32({16}), Plan({16}, "ab", "a")));
  EXPECT_FALSE(GathersAndCuts(F32({10}), Plan({10}, "ab", "")));
  EXPECT_FALSE(GathersAndCuts(F32({8, 8}), Plan({8, 8}, "a,", ",a")));
  EXPECT_FALSE(GathersAndCuts(F32({8, 8}), Plan({8, 8}, "a,", "a,")));
}

TEST_F(ReshardTest, AnAxisThatChangesDimensionIsAnAllToAll) {
  UseMesh({4, 2});
  EXPECT_EQ(Describe({16, 16}, "a,", ",a"), "all-to-all dim 0 to dim 1 over {a}: 192 bytes\n");
  EXPECT_EQ(Describe({16, 16}, "ab,", "a,b"), "all-to-all dim 0 to dim 1 over {b}: 64 bytes\n");
  EXPECT_EQ(Describe({16, 16}, "ab,", ",ab"), "all-to-all dim 0 to dim 1 over {a, b}: 112 bytes\n");
}

TEST_F(ReshardTest, OtherPlacesOfTheSameShardsAreAPermute) {
  UseMesh({2, 2});
  // Half of the devices keep their shards.
  EXPECT_EQ(Describe({8, 8}, "a,b", "b,a"), "collective-permute: 32 bytes\n");
  EXPECT_EQ(Describe({8, 8}, "a,", "b,"), "collective-permute: 64 bytes\n");
  EXPECT_EQ(Describe({8, 8}, "ab,", "ba,"), "collective-permute: 32 bytes\n");
}

TEST_F(ReshardTest, PartialSumsAreScatteredWhereTheTargetIsSharded) {
  UseMesh({4, 2});
  EXPECT_EQ(Describe({16, 16}, ",+a", "a,"), "reduce-scatter dim 0 over {a}: 768 bytes\n");
  EXPECT_EQ(Describe({16, 16}, ",+a", ","), "all-reduce over {a}: 1536 bytes\n");
  EXPECT_EQ(Describe({16, 16}, "b,+a", "b,a"), "reduce-scatter dim 1 over {a}: 384 bytes\n");
  EXPECT_EQ(Describe({16, 16}, ",+ab", "ab,"), "reduce-scatter dim 0 over {a, b}: 896 bytes\n");
}

// No engine's collectives reduce by xor: the parts are gathered, so less is sent the less
// each of them is, and one axis after the other.
TEST_F(ReshardTest, WhatNoCollectiveReducesByIsPricedAsGathered) {
  UseMesh({2, 4});
  const Shape* shape = context_.WithDefaultLayout(context_.MakeArray(ElementType::kS32, {12}));
  EXPECT_EQ(PlanReshard(context_, shape, Xor("+b"), S("")).bytes, 48 * 3);
  const ReshardPlan& both = PlanReshard(context_, shape, Xor("+ab"), S(""));
  EXPECT_EQ(both.bytes, 48 * (1 + 3));
  EXPECT_EQ(both.moves.size(), 2u);
  // As for sums, each device gets its part of every part.
  EXPECT_EQ(PlanReshard(context_, shape, Xor("+b"), S("b")).bytes, 48 * 3 / 4);
  EXPECT_EQ(PlanReshard(context_, shape, S("+ab"), S("")).moves.size(), 1u);
}

TEST_F(ReshardTest, PartialSumsStayPartialOnRequest) {
  UseMesh({4, 2});
  EXPECT_EQ(Describe({16, 16}, "a,+b", ",+b"), "all-gather dim 0 over {a}: 768 bytes\n");
  EXPECT_EQ(Describe({16, 16}, ",", ",+a"), "drop-partial over {a}: 0 bytes\n");
  EXPECT_EQ(Describe({16, 16}, ",+ab", ",+a"), "all-reduce over {b}: 1024 bytes\n");
}

// The parts of a maximum are not those of a sum.
TEST_F(ReshardTest, PartsOfAnotherReductionAreReducedFirst) {
  UseMesh({4, 2});
  const auto describe = [&](const char* from, const char* to) {
    ShardingBuilder b(*S(from));
    b.partial_op = PartialOp::kMax;
    std::string text;
    for (const Move& m : PlanReshard(context_, F32({16, 16}), b.Intern(context_), S(to)).moves) {
      absl::StrAppend(&text, MoveKindName(m.kind), " ", m.bytes, "; ");
    }
    return text;
  };
  EXPECT_EQ(describe(",+a", ",+b"), "all-reduce 1536; drop-partial 0; ");
  EXPECT_EQ(describe(",+a", ",+a"), "all-reduce 1536; drop-partial 0; ");
  EXPECT_EQ(describe(",b+a", ",+b"), "all-reduce 768; pad-partial 0; ");
}

// Each device has its shard already, and the identity is the rest of its part.
TEST_F(ReshardTest, ShardsBecomePartsForNothing) {
  UseMesh({4, 2});
  EXPECT_EQ(Describe({16, 16}, "a,", ",+a"), "pad-partial dim 0 over {a}: 0 bytes\n");
  EXPECT_EQ(Describe({16, 16}, ",ab", ",a+b"), "pad-partial dim 1 over {b}: 0 bytes\n");
  EXPECT_EQ(Describe({10, 16}, "a,b", ",b+a"), "pad-partial dim 0 over {a}: 0 bytes\n");
  EXPECT_EQ(Plan({16, 16}, "a,b", ",+ab").bytes, 0);
  EXPECT_EQ(Plan({16, 16}, "a,", ",+ab").bytes, 0);
  EXPECT_EQ(Plan({16, 16}, "a,", ",+a").lower_bound, 0);
  // 10 over {a, b} are tiles of 2, over {a} of 3: a part must be of the whole dimension.
  EXPECT_EQ(Plan({10, 16}, "ab,", ",+ab").bytes, 0);
}

// 10 over {a, b} are tiles of 2 (b = 4), over {a} tiles of 5: of what b gathers, [0, 8) and [8,
// 10), the second device lacks three elements.
TEST_F(ReshardTest, CeilTilesThatDoNotNestAreReTiled) {
  UseMesh({2, 4});
  EXPECT_EQ(Describe({10, 16}, "ab,", "a,"),
            "all-gather dim 0 over {b}, with a halo exchange: 480 bytes\n");  // 3 * 2 rows, 3 / 2
  EXPECT_EQ(Describe({10, 16}, "a,", "ab,"),
            "slice dim 0 over {b}, with a halo exchange: 96 bytes\n");  // 3 / 2
  EXPECT_EQ(Describe({10, 16}, "ab,", "a,b"),
            "all-to-all dim 0 to dim 1 over {b}, with a halo exchange: 120 bytes\n");
  EXPECT_EQ(Describe({10, 16}, "a,+b", "ab,"),
            "reduce-scatter dim 0 over {b}, with a halo exchange: 480 bytes\n");
  EXPECT_EQ(Plan({10, 16}, "ab,", "a,").collectives, 2);
  EXPECT_EQ(Plan({10, 16}, "a,", "ab,").collectives, 1);
  // 16 nests: tiles of 2 and of 8.
  EXPECT_EQ(Describe({16, 1}, "ab,", "a,"), "all-gather dim 0 over {b}: 24 bytes\n");
}

// The vocabulary of GPT-2, 50,257 words, over 8 devices and over 4.
TEST_F(ReshardTest, ARetileSendsLittleMoreThanWhatADeviceLacks) {
  UseMesh({4, 2});
  for (const auto& [from, to] : {std::pair("ab,", "a,"), {"ab,", "a,b"}, {"ba,", "b,"}}) {
    const ReshardPlan& plan = Plan({50257, 768}, from, to);
    EXPECT_LE(plan.bytes, 1.001 * plan.lower_bound) << from << " -> " << to;
  }
  EXPECT_LE(Plan({50257, 768}, "a,", "ab,").bytes, 3 * 768 * 4);
}

TEST_F(ReshardTest, BetweenDeviceOrdersWithEqualCountsItIsOnePermute) {
  UseMesh({2, 2});
  BaseMesh* other = InternBaseMesh(context_, {4}, *DeviceOrder::List({0, 1, 3, 2}));
  ShardingBuilder to(other, 2);
  to.dims[0] = {other->FullAxis(0)};
  const ReshardPlan& plan = PlanReshard(context_, F32({8, 8}), S("ab,"), to.Intern(context_));
  ASSERT_EQ(plan.moves.size(), 1);
  EXPECT_EQ(plan.moves[0].kind, MoveKind::kPermute);
}

TEST_F(ReshardTest, PeakMemoryCountsBothSidesOfAMove) {
  UseMesh({4, 2});
  EXPECT_EQ(Plan({16, 16}, "a,", ",").peak_bytes, 256 + 1024);
}

}  // namespace
}  // namespace shardcall
