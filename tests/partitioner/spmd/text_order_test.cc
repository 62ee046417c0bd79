// SPDX-License-Identifier: Apache-2.0
// The instructions of a per-device program stand in the order of the text.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/partitioner/spmd/plan_testing.h"

namespace shardcall {
namespace {

using testing::ElementsAre;

// A computation that adds, and an entry with these lines.
std::unique_ptr<PartitionedProgram> OfLines(const std::vector<std::string>& lines) {
  return Done(absl::StrCat("add {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n"
                           "  ROOT s = f32[] add(a, b)\n}\nENTRY main {\n  ",
                           absl::StrJoin(lines, "\n  "), "\n}\n"),
              8);
}

// The ops of the entry that are among these, in their order.
std::vector<std::string> Ops(const PartitionedProgram& p, const std::vector<Opcode>& among) {
  const Module& m = p.local.module;
  std::vector<std::string> out;
  for (const InstrId id : m.comp(m.entry()).instructions) {
    const Opcode op = m.instr(id).opcode;
    if (std::count(among.begin(), among.end(), op) > 0) out.emplace_back(OpcodeText(op));
  }
  return out;
}

const std::string kX = "x = f32[16] parameter(0), sharding={devices=[8]<=[8]}",
                  kY = "y = f32[16] parameter(1), sharding={devices=[8]<=[8]}",
                  kZero = "z = f32[] constant(0)",
                  kA = "a = f32[] reduce(x, z), dimensions={0}, to_apply=add",
                  kB = "b = f32[] reduce(y, z), dimensions={0}, to_apply=add",
                  kSine = "c = f32[] sine(a)", kCosine = "d = f32[] cosine(b)",
                  kRoot = "ROOT r = (f32[], f32[]) tuple(c, d)";
const std::vector<Opcode> kOps = {Opcode::kAllReduce, Opcode::kSine, Opcode::kCosine};

TEST(TextOrder, WhatStandsSideBySideStaysSo) {
  const auto p = OfLines({kX, kY, kZero, kA, kB, kSine, kCosine, kRoot});
  ASSERT_NE(p, nullptr);
  EXPECT_THAT(Ops(*p, kOps), ElementsAre("all-reduce", "all-reduce", "sine", "cosine"));
}

TEST(TextOrder, WhatComesLateStaysSo) {
  const auto p = OfLines({kX, kY, kZero, kB, kCosine, kA, kSine, kRoot});
  ASSERT_NE(p, nullptr);
  EXPECT_THAT(Ops(*p, kOps), ElementsAre("all-reduce", "cosine", "all-reduce", "sine"));
}

TEST(TextOrder, WhatSeveralReadComesBeforeTheFirst) {
  // Both sorts read the gathered x. That of the first result stands last.
  const auto compare = [](const std::string& name, const std::string& direction) {
    return absl::StrCat(name, " {\n  p = f32[] parameter(0)\n  q = f32[] parameter(1)\n",
                        "  ROOT l = pred[] compare(p, q), direction=", direction, "\n}\n");
  };
  const auto p = Done(absl::StrCat(compare("less", "LT"), compare("more", "GT"),
                                   "ENTRY main {\n"
                                   "  x = f32[16] parameter(0), sharding={devices=[8]<=[8]}\n"
                                   "  s = f32[16] sort(x), dimensions={0}, to_apply=less\n"
                                   "  t = f32[16] sort(x), dimensions={0}, to_apply=more\n"
                                   "  ROOT r = (f32[16], f32[16]) tuple(t, s)\n}\n"),
                      8);
  ASSERT_NE(p, nullptr);
  EXPECT_THAT(Ops(*p, {Opcode::kAllGather, Opcode::kSort}),
              ElementsAre("all-gather", "sort", "sort"));
}

TEST(TextOrder, CollectivesAreListedInIt) {
  const auto p = OfLines({kX, kY, kZero, kB, kCosine, kA, kSine, kRoot});
  ASSERT_NE(p, nullptr);
  const std::vector<CollectiveRecord>& made = p->local.collectives;
  ASSERT_EQ(made.size(), 2u);
  const Module& global = p->global->program.module;
  EXPECT_EQ(global.instr(made[0].cause.consumer).name.substr(0, 1), "b");
  EXPECT_EQ(global.instr(made[1].cause.consumer).name.substr(0, 1), "a");
}

}  // namespace
}  // namespace shardcall
