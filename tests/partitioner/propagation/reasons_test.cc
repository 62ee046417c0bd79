// SPDX-License-Identifier: Apache-2.0
// The texts of where shardings came from: what they say, and that all of them together grow with
// the program only.
#include "shardcall/partitioner/propagation/reasons.h"

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/partitioner/import/import_testing.h"

namespace shardcall {
namespace {

constexpr char kSharded[] = "sharding={devices=[8]<=[8]}";
constexpr char kHeader[] = "num_partitions=8, allow_spmd_sharding_propagation_to_output={true}";

struct Propagated {
  explicit Propagated(const std::string& body, const std::string& header = kHeader)
      : program(Import(EntryModule(body, header), {.num_partitions = 8})) {
    RuleTable rules(program, {});
    absl::StatusOr<PropagationResult> done = Propagate(program, rules, {});
    EXPECT_TRUE(done.ok()) << done.status();
    if (done.ok()) result = *std::move(done);
  }
  LeafId Leaf(absl::string_view name, int flat = 0) const {
    return program.leaves.leaf(FindInstr(program, name), flat);
  }
  std::string Of(absl::string_view name, bool whole = false) const {
    return Reasons(program, result, whole).Of(Leaf(name));
  }

  Program program;
  PropagationResult result;
};

// v0 is the argument, v1 to vN are negations in a row.
std::string Chain(int n) {
  std::string body = absl::StrCat("v0 = f32[8] parameter(0), ", kSharded, "\n");
  for (int k = 1; k <= n; ++k) {
    absl::StrAppend(&body, k == n ? "ROOT " : "", "v", k, " = f32[8] negate(v", k - 1, ")\n");
  }
  return body;
}

std::string StepText(int k) { return absl::StrCat(" -> %v", k, " operand 0 -> result"); }

TEST(Reasons, AShortChainIsToldWhole) {
  const Propagated p(Chain(16));
  std::string all = "argument 0";
  for (int k = 1; k <= 16; ++k) {
    absl::StrAppend(&all, StepText(k));
    EXPECT_EQ(p.Of(absl::StrCat("v", k)), all);
  }
}

TEST(Reasons, ALongChainHasItsEndsAndTheNumberOfStepsBetweenThem) {
  const Propagated p(Chain(100));
  for (const int last : {17, 18, 60, 100}) {
    std::string text = "argument 0", all = "argument 0";
    for (int k = 1; k <= 8; ++k) absl::StrAppend(&text, StepText(k));
    absl::StrAppend(&text, " -> (", last - 16, " more steps)");
    for (int k = last - 7; k <= last; ++k) absl::StrAppend(&text, StepText(k));
    for (int k = 1; k <= last; ++k) absl::StrAppend(&all, StepText(k));
    const std::string name = absl::StrCat("v", last);
    EXPECT_EQ(p.Of(name), text);
    EXPECT_EQ(p.Of(name, /*whole=*/true), all);
    EXPECT_EQ(p.result.Explain(p.program, p.Leaf(name)), all);
  }
}

TEST(Reasons, AnswersDoNotDependOnWhatWasAskedBefore) {
  const Propagated p(Chain(60));
  Reasons forwards(p.program, p.result), backwards(p.program, p.result);
  for (int k = 60; k >= 0; --k) backwards.Of(p.Leaf(absl::StrCat("v", k)));
  for (int k = 0; k <= 60; ++k) {
    const std::string name = absl::StrCat("v", k);
    EXPECT_EQ(forwards.Of(p.Leaf(name)), p.Of(name));
    EXPECT_EQ(backwards.Of(p.Leaf(name)), p.Of(name));
  }
}

// If each text walked to the origin, or had all steps, this would take hours.
TEST(Reasons, TheTextsOfAllValuesGrowWithTheProgramOnly) {
  const auto size_of_all = [](int n) {
    const Propagated p(Chain(n));
    Reasons reasons(p.program, p.result);
    size_t size = 0;
    for (int leaf = 0; leaf < p.program.leaves.num_leaves(); ++leaf) {
      size += reasons.Of(LeafId(leaf)).size();
    }
    return size;
  };
  const size_t small = size_of_all(5000), large = size_of_all(10000);
  EXPECT_LT(large, small * 5 / 2);
}

// Of an op with many operands, places are found in a table, which gives what a walk would.
TEST(Reasons, OperandsAndResultsOfWideOpsAreNumbered) {
  std::string body, operands;
  for (int k = 0; k < 40; ++k) {
    absl::StrAppend(&body, "p", k, " = f32[8] parameter(", k, ")",
                    k == 33 ? absl::StrCat(", ", kSharded) : "", "\n");
    absl::StrAppend(&operands, k == 0 ? "" : ", ", "p", k);
  }
  const Propagated p(absl::StrCat(body, "r = f32[320] concatenate(", operands,
                                  "), dimensions={0}\n", "ROOT n = f32[320] negate(r)\n"));
  EXPECT_EQ(p.Of("n"), "argument 33 -> %r operand 33 -> result -> %n operand 0 -> result");
}

TEST(Reasons, DimensionsWithAxesByDifferentWaysAreToldApart) {
  const Propagated p(absl::StrCat(
      "x = f32[16,32] parameter(0), sharding={devices=[2,1,4]<=[8] last_tile_dim_replicate}\n",
      "w = f32[32,64] parameter(1), ",
      "sharding={devices=[1,4,2]<=[2,4]T(1,0) last_tile_dim_replicate}\n",
      "y = f32[16,64] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n",
      "ROOT z = f32[64,16] transpose(y), dimensions={1,0}\n"));
  EXPECT_EQ(p.Of("y"),
            "dim 0: argument 0 -> %y operand 0 -> result; "
            "dim 1: argument 1 -> %y operand 1 -> result");
  EXPECT_EQ(p.Of("z"),
            "dim 0: argument 1 -> %y operand 1 -> result -> %z operand 0 -> result; "
            "dim 1: argument 0 -> %y operand 0 -> result -> %z operand 0 -> result");
}

TEST(Reasons, WhatIsReplicatedIsSoForAReason) {
  const Propagated p(absl::StrCat(
      "x = f32[8] parameter(0), ", kSharded, "\n",
      "said = f32[8] parameter(1), sharding={replicated}\n",  //
      "left = f32[8] parameter(2)\n",                         //
      "alone = f32[8] negate(said)\n",
      "c = f32[8] custom-call(alone), custom_call_target=\"Sharding\", sharding={replicated}\n",
      "i = s32[] constant(0)\n", "cut = f32[2] dynamic-slice(x, i), dynamic_slice_sizes={2}\n",
      "ROOT r = (f32[8], f32[2], f32[8]) tuple(c, cut, left)\n"));
  EXPECT_EQ(p.Of("said"), "replicated: annotated so at argument 1");
  EXPECT_EQ(p.Of("left"), "replicated: the program states no sharding for argument 2");
  EXPECT_EQ(p.Of("c"), "replicated: annotated so at %c");
  EXPECT_EQ(p.Of("i"), "replicated: it has no dimensions");
  EXPECT_EQ(p.Of("alone"), "replicated: nothing sharded reaches it");
  EXPECT_EQ(p.Of("cut"),
            "replicated: %cut has sharded values, and passes none of their axes to it");
}

TEST(Reasons, ResultsWithoutAShardingAreSaidToHaveNone) {
  const Propagated p(
      absl::StrCat("x = f32[8] parameter(0), ", kSharded, "\n", "y = f32[8] sine(x)\n",
                   "ROOT t = (f32[8], f32[8], f32[8]) tuple(y, x, y)\n"),
      "num_partitions=8");
  EXPECT_EQ(p.Of("y"), "replicated: the program states no sharding for result 0");
  EXPECT_EQ(p.Of("x"), "argument 0");
  EXPECT_EQ(p.Of("x.1"), "replicated: the program states no sharding for result 1");
}

// Steps that lead in a circle end, wherever one begins.
TEST(Reasons, CirclesEnd) {
  Propagated p(Chain(4));
  const LeafId a = p.Leaf("v1"), b = p.Leaf("v2"), c = p.Leaf("v3");
  p.result.provenance.at(a, 0).from = c;
  Reasons reasons(p.program, p.result);
  EXPECT_EQ(reasons.Of(b), "%v3 -> %v1 %v3 -> result -> %v2 operand 0 -> result");
  EXPECT_FALSE(reasons.Of(a).empty());
  EXPECT_FALSE(reasons.Of(c).empty());
}

}  // namespace
}  // namespace shardcall
