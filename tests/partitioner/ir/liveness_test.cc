// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/analysis/liveness.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/partitioner/ir/text_util.h"

namespace shardcall {
namespace {

using testing::ElementsAre;
using testing::UnorderedElementsAre;

constexpr char kProgram[] = R"(HloModule m

%unused (a: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  ROOT %twice = f32[] add(%a, %a)
}

%logged (b: f32[]) -> f32[] {
  %b = f32[] parameter(0)
  %log = () custom-call(%b), custom_call_target="log", custom_call_has_side_effect=true
  ROOT %b2 = f32[] add(%b, %b)
}

ENTRY %e (x: f32[], y: f32[]) -> f32[] {
  %x = f32[] parameter(0)
  %y = f32[] parameter(1)
  %first = f32[] negate(%x)
  %nobody = f32[] negate(%first)
  %dead_call = f32[] call(%nobody), to_apply=%unused
  %live_call = f32[] call(%first), to_apply=%logged
  %before = f32[] sine(%x)
  ROOT %r = f32[] cosine(%x), control-predecessors={%before}
}
)";

std::vector<std::string> LiveNames(const Module& m, const Liveness& live, absl::string_view comp) {
  std::vector<std::string> names;
  for (int i = 0; i < m.num_instructions(); ++i) {
    const Instruction& instr = m.instr(InstrId(i));
    if (m.comp(instr.computation).name != comp || !live.Has(InstrId(i))) continue;
    names.emplace_back(instr.name);
  }
  return names;
}

TEST(Liveness, TheRootNeedsItsOperandsAndWhatMustRunBefore) {
  const auto m = Parse(kProgram);
  ASSERT_TRUE(m.ok()) << m.status();
  const Liveness live(*m, EffectsAt::kRunning);
  // Both parameters stay, read or not; %first is there for the call that logs.
  EXPECT_THAT(LiveNames(*m, live, "e"), ElementsAre("x", "y", "first", "live_call", "before", "r"));
}

TEST(Liveness, WhatHasASideEffectIsNeededThoughNobodyReadsIt) {
  const auto m = Parse(kProgram);
  ASSERT_TRUE(m.ok()) << m.status();
  const Liveness live(*m, EffectsAt::kRunning);
  EXPECT_THAT(LiveNames(*m, live, "logged"), ElementsAre("b", "log", "b2"));
}

TEST(Liveness, ComputationsThatOnlyDeadCallsNameAreNotCalled) {
  const auto m = Parse(kProgram);
  ASSERT_TRUE(m.ok()) << m.status();
  const std::vector<bool> called = Liveness(*m, EffectsAt::kRunning).CalledComputations();
  std::vector<std::string> names;
  for (int c = 0; c < m->num_computations(); ++c) {
    if (called[c]) names.emplace_back(m->comp(CompId(c)).name);
  }
  EXPECT_THAT(names, UnorderedElementsAre("e", "logged"));
}

}  // namespace
}  // namespace shardcall
