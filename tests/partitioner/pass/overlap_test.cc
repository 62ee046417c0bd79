// SPDX-License-Identifier: Apache-2.0
// Collectives as asynchronous pairs: what moves, what must not, and that the
// program stays valid.
#include "shardcall/partitioner/pass/overlap.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "shardcall/partitioner/ir/text/printer.h"
#include "shardcall/partitioner/ir/verifier/verifier.h"
#include "tests/support/verify_text.h"

namespace shardcall {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr char kHead[] =
    "HloModule m, num_partitions=2\n"
    "add {\n x = f32[] parameter(0)\n y = f32[] parameter(1)\n ROOT plus = f32[] add(x, y)\n}\n";
constexpr char kAll[] = "channel_id=1, replica_groups={{0,1}}, use_global_device_ids=true";

struct Outcome {
  bool changed = false;
  std::string text;
  // The names of the entry's instructions without parameters, in order; the end of
  // a collective is "done of <start>".
  std::vector<std::string> order;
};

Outcome Split(const std::string& text, const OverlapOptions& options = {}) {
  absl::StatusOr<Module> m = ParseText(text);
  EXPECT_TRUE(m.ok()) << m.status() << text;
  EXPECT_TRUE(VerifyModule(*m, "").ok()) << VerifyModule(*m, "");
  absl::StatusOr<PassResult> r = MakeOverlap(options)->Run(*m);
  EXPECT_TRUE(r.ok()) << r.status();
  EXPECT_TRUE(VerifyModule(r->module, "").ok()) << VerifyModule(r->module, "");
  Outcome out;
  out.changed = r->changed;
  out.text = PrintModule(r->module);
  EXPECT_TRUE(ParseText(out.text).ok()) << out.text;
  for (InstrId id : r->module.comp(r->module.entry()).instructions) {
    const Instruction& i = r->module.instr(id);
    if (i.opcode == Opcode::kParameter) continue;
    const bool done = absl::EndsWith(OpcodeText(i.opcode), "-done");
    out.order.push_back(
        done ? absl::StrCat("done of ", r->module.instr(r->module.operand(id, 0)).name)
             : std::string(i.name));
  }
  return out;
}

// x and w are large; a dot of them is worth many microseconds.
std::string Entry(const std::string& body) {
  return absl::StrCat(kHead, "ENTRY e {\n x = f32[512,512] parameter(0)\n",
                      " w = f32[512,512] parameter(1)\n", body, "\n}\n");
}
constexpr char kDot[] = "lhs_contracting_dims={1}, rhs_contracting_dims={0}";

TEST(Overlap, WhatDoesNotNeedTheResultRunsInBetween) {
  const Outcome r =
      Split(Entry(absl::StrCat(" a = f32[512,512] all-reduce(x), ", kAll, ", to_apply=add\n",
                               " n = f32[512,512] negate(a)\n", " d = f32[512,512] dot(x, w), ",
                               kDot, "\n", " ROOT s = f32[512,512] add(n, d)")));
  EXPECT_THAT(r.order, ElementsAre("a", "d", "done of a", "n", "s"));
  EXPECT_THAT(r.text, HasSubstr("all-reduce-start("));
}

TEST(Overlap, AStartGoesUpToWhereItsOperandIsMade) {
  const Outcome r = Split(Entry(absl::StrCat(
      " n = f32[512,512] negate(w)\n", " d = f32[512,512] dot(x, w), ", kDot, "\n",
      " g = f32[1024,512] all-gather(n), ", kAll, ", dimensions={0}\n",
      " z = f32[512,512] negate(d)\n", " ROOT t = (f32[512,512], f32[1024,512]) tuple(z, g)")));
  EXPECT_THAT(r.order, ElementsAre("n", "g", "d", "z", "done of g", "t"));
}

TEST(Overlap, WithoutWorkInBetweenNothingChanges) {
  const Outcome r = Split(Entry(
      absl::StrCat(" d = f32[512,512] dot(x, w), ", kDot, "\n", " a = f32[512,512] all-reduce(d), ",
                   kAll, ", to_apply=add\n", " ROOT n = f32[512,512] negate(a)")));
  EXPECT_FALSE(r.changed);
  EXPECT_THAT(r.text, Not(HasSubstr("-start")));
}

TEST(Overlap, EveryCollectiveHasItsPair) {
  for (const char* collective :
       {"all-reduce(x), $, to_apply=add", "all-gather(x), $, dimensions={1}",
        "reduce-scatter(x), $, dimensions={0}, to_apply=add",
        "all-to-all(x), channel_id=1, replica_groups={{0,1}}, dimensions={0}",
        "collective-broadcast(x), channel_id=1, replica_groups={{0,1}}",
        "collective-permute(x), channel_id=1, source_target_pairs={{0,1},{1,0}}"}) {
    std::string op = collective;
    if (const size_t at = op.find('$'); at != std::string::npos) op.replace(at, 1, kAll);
    const std::string shape = absl::StartsWith(op, "all-gather")       ? "f32[512,1024]"
                              : absl::StartsWith(op, "reduce-scatter") ? "f32[256,512]"
                                                                       : "f32[512,512]";
    const Outcome r =
        Split(Entry(absl::StrCat(" c = ", shape, " ", op, "\n d = f32[512,512] dot(x, w), ", kDot,
                                 "\n", " ROOT t = (", shape, ", f32[512,512]) tuple(c, d)")));
    EXPECT_THAT(r.order, ElementsAre("c", "d", "done of c", "t")) << r.text;
    EXPECT_THAT(r.text, HasSubstr(absl::StrCat(op.substr(0, op.find('(')), "-start(")));
    EXPECT_THAT(r.text, HasSubstr(absl::StrCat(op.substr(0, op.find('(')), "-done(")));
  }
}

TEST(Overlap, SeveralOperandsAndResultsStayTogether) {
  const Outcome r = Split(Entry(absl::StrCat(
      " c = (f32[512,512], f32[512,512]) all-reduce(x, w), ", kAll, ", to_apply=add\n",
      " p = f32[512,512] get-tuple-element(c), index=0\n",
      " q = f32[512,512] get-tuple-element(c), index=1\n", " d = f32[512,512] dot(x, w), ", kDot,
      "\n", " e = f32[512,512] dot(d, w), ", kDot, "\n", " u = f32[512,512] add(q, e)\n",
      " ROOT s = f32[512,512] add(u, p)")));
  EXPECT_THAT(r.order, ElementsAre("c", "d", "e", "done of c", "q", "u", "p", "s"));
}

TEST(Overlap, SideEffectsAndControlPredecessorsKeepTheirOrder) {
  const Outcome r = Split(Entry(absl::StrCat(
      " a = f32[512,512] all-reduce(x), ", kAll, ", to_apply=add\n",
      " first = () custom-call(a), custom_call_target=\"log\", custom_call_has_side_effect=true\n",
      " second = () custom-call(x), custom_call_target=\"log\", custom_call_has_side_effect=true\n",
      " d = f32[512,512] dot(x, w), ", kDot, "\n", " e = f32[512,512] dot(w, x), ", kDot,
      ", control-predecessors={second}\n", " ROOT s = f32[512,512] add(d, e)")));
  EXPECT_THAT(r.order, ElementsAre("a", "d", "done of a", "first", "second", "e", "s"));
}

TEST(Overlap, ACollectiveBehindAControlPredecessorDoesNotPassIt) {
  const Outcome r = Split(Entry(absl::StrCat(
      " d = f32[512,512] dot(x, w), ", kDot, "\n", " a = f32[512,512] all-reduce(x), ", kAll,
      ", to_apply=add, control-predecessors={d}\n", " e = f32[512,512] dot(w, x), ", kDot,
      ", control-predecessors={a}\n", " ROOT t = (f32[512,512], f32[512,512]) tuple(a, e)")));
  EXPECT_FALSE(r.changed) << r.text;
}

TEST(Overlap, StartsThatAreReadyTogetherKeepTheirOrder) {
  const Outcome r = Split(Entry(
      absl::StrCat(" b = f32[512,512] all-reduce(w), ", kAll, ", to_apply=add\n",
                   " a = f32[512,512] all-reduce(x), ", kAll, ", to_apply=add\n",
                   " d = f32[512,512] dot(x, w), ", kDot, "\n", " e = f32[512,512] dot(d, w), ",
                   kDot, "\n", " u = f32[512,512] add(a, e)\n ROOT s = f32[512,512] add(u, b)")));
  EXPECT_THAT(r.order, ElementsAre("b", "a", "d", "e", "done of a", "u", "done of b", "s"));
}

TEST(Overlap, WhatIsReadyFromTheFirstIsFetchedAheadAsFarAsMemoryAllows) {
  // Weights that are gathered from parameters could all be in memory at once; each
  // gather has 3 MiB, and a layer takes as long as several of them.
  std::string body = " v.0 = f32[512,512] negate(x)\n";
  for (int k = 1; k <= 9; ++k) {
    absl::StrAppend(&body, " g.", k, " = f32[1024,512] all-gather(w), ", kAll, ", dimensions={0}\n",
                    " h.", k, " = f32[512,512] slice(g.", k, "), slice={[0:512], [0:512]}\n", " d.",
                    k, ".0 = f32[512,512] dot(v.", k - 1, ", h.", k, "), ", kDot, "\n");
    for (int j = 1; j < 40; ++j) {
      absl::StrAppend(&body, " d.", k, ".", j, " = f32[512,512] tanh(d.", k, ".", j - 1, ")\n");
    }
    absl::StrAppend(&body, " v.", k, " = f32[512,512] tanh(d.", k, ".39)\n");
  }
  const std::string text = Entry(absl::StrCat(body, " ROOT r = f32[512,512] negate(v.9)"));
  for (int ahead : {1, 2, 3}) {
    OverlapOptions options;
    options.max_early_bytes = ahead * (int64_t{3} << 20);
    const Outcome r = Split(text, options);
    int held = 0, most = 0, pairs = 0;  // gathered and not yet sliced
    for (const std::string& name : r.order) {
      if (absl::StartsWith(name, "g.")) most = std::max(most, ++held);
      if (absl::StartsWith(name, "h.")) --held;
      pairs += absl::StartsWith(name, "done of g.");
    }
    EXPECT_EQ(most, ahead + 1) << testing::PrintToString(r.order);
    EXPECT_GE(pairs, 8);
  }
}

TEST(Overlap, NoMoreIsStartedEarlyThanMemoryAllows) {
  const std::string text = Entry(absl::StrCat(
      " d = f32[512,512] dot(x, w), ", kDot, "\n", " g = f32[1024,512] all-gather(w), ", kAll,
      ", dimensions={0}\n", " ROOT t = (f32[512,512], f32[1024,512]) tuple(d, g)"));
  EXPECT_THAT(Split(text).order, ElementsAre("g", "d", "done of g", "t"));
  OverlapOptions options;
  options.max_early_bytes = int64_t{1} << 20;  // of 3 MiB
  EXPECT_FALSE(Split(text, options).changed);
}

TEST(Overlap, NoMoreIsMadeEarlyThanMemoryAllows) {
  // Each of the chain is 1 MiB; two may be made while `n` waits.
  std::string body = absl::StrCat(" a = f32[512,512] all-reduce(x), ", kAll,
                                  ", to_apply=add\n n = f32[512,512] negate(a)\n"
                                  " d.0 = f32[512,512] dot(x, w), ",
                                  kDot, "\n");
  for (int k = 1; k < 6; ++k) {
    absl::StrAppend(&body, " d.", k, " = f32[512,512] dot(d.", k - 1, ", w), ", kDot, "\n");
  }
  absl::StrAppend(&body, " ROOT s = f32[512,512] add(n, d.5)");
  OverlapOptions options;
  options.cost.bandwidth = 1e6;  // the transfer outlasts all dots
  EXPECT_THAT(Split(Entry(body), options).order,
              ElementsAre("a", "d.0", "d.1", "d.2", "d.3", "d.4", "d.5", "done of a", "n", "s"));
  options.max_early_bytes = int64_t{2} << 20;
  EXPECT_THAT(Split(Entry(body), options).order,
              ElementsAre("a", "d.0", "d.1", "done of a", "n", "d.2", "d.3", "d.4", "d.5", "s"));
}

TEST(Overlap, InLoopsAndBranchesButNotAcrossThem) {
  const std::string text = absl::StrCat(
      kHead,
      "body {\n t = (s32[], f32[512,512], f32[512,512]) parameter(0)\n"
      " i = s32[] get-tuple-element(t), index=0\n"
      " v = f32[512,512] get-tuple-element(t), index=1\n"
      " k = f32[512,512] get-tuple-element(t), index=2\n"
      " d = f32[512,512] dot(v, k), ",
      kDot, "\n",
      " next = f32[512,512] collective-permute(k), channel_id=2, "
      "source_target_pairs={{0,1},{1,0}}\n"
      " one = s32[] constant(1)\n j = s32[] add(i, one)\n"
      " ROOT u = (s32[], f32[512,512], f32[512,512]) tuple(j, d, next)\n}\n"
      "go {\n t = (s32[], f32[512,512], f32[512,512]) parameter(0)\n"
      " i = s32[] get-tuple-element(t), index=0\n n = s32[] constant(4)\n"
      " ROOT l = pred[] compare(i, n), direction=LT\n}\n"
      "ENTRY e {\n t = (s32[], f32[512,512], f32[512,512]) parameter(0)\n"
      " ROOT w = (s32[], f32[512,512], f32[512,512]) while(t), condition=go, body=body\n}\n");
  const Outcome r = Split(text);
  EXPECT_TRUE(r.changed);
  const size_t start = r.text.find("collective-permute-start("), dot = r.text.find(" dot("),
               done = r.text.find("collective-permute-done(");
  EXPECT_LT(start, dot);
  EXPECT_LT(dot, done);
  EXPECT_NE(done, std::string::npos);
  EXPECT_THAT(r.order, ElementsAre("w"));
}

TEST(Overlap, WhatIsAsynchronousAlreadyStays) {
  const Outcome r = Split(Entry(
      absl::StrCat(" s = f32[512,512] all-reduce-start(x), ", kAll, ", to_apply=add\n",
                   " d = f32[512,512] dot(x, w), ", kDot, "\n",
                   " a = f32[512,512] all-reduce-done(s)\n ROOT r = f32[512,512] add(a, d)")));
  EXPECT_FALSE(r.changed);
  EXPECT_THAT(r.order, ElementsAre("s", "d", "done of s", "r"));
}

TEST(Overlap, TimeGrowsWithTheProgramOnly) {
  // 20,000 layers whose weights are gathered from the parameters: all gathers are
  // ready from the first.
  std::string body = " v.0 = f32[512,512] negate(x)\n";
  const int layers = 20000;
  for (int k = 1; k <= layers; ++k) {
    absl::StrAppend(&body, " g.", k, " = f32[1024,512] all-gather(w), ", kAll, ", dimensions={0}\n",
                    " h.", k, " = f32[512,512] slice(g.", k, "), slice={[0:512], [0:512]}\n", " v.",
                    k, " = f32[512,512] dot(v.", k - 1, ", h.", k, "), ", kDot, "\n");
  }
  absl::StatusOr<Module> m =
      ParseText(Entry(absl::StrCat(body, " ROOT r = f32[512,512] negate(v.", layers, ")")));
  ASSERT_TRUE(m.ok()) << m.status();
  const absl::Time start = absl::Now();
  absl::StatusOr<PassResult> r = MakeOverlap()->Run(*m);
  ASSERT_TRUE(r.ok()) << r.status();
  EXPECT_TRUE(r->changed);
  EXPECT_LT(absl::Now() - start, absl::Seconds(60));  // a quadratic one takes minutes
}

}  // namespace
}  // namespace shardcall
