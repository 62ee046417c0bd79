// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/build/module_cloner.h"

#include "gtest/gtest.h"
#include "shardcall/partitioner/ir/module.h"
#include "tests/partitioner/ir/text_util.h"

namespace shardcall {
namespace {

constexpr char kProgram[] = R"(HloModule m

%sum (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %add = f32[] add(%a, %b)
}

ENTRY %e (x: f32[4]) -> f32[] {
  %x = f32[4]{0} parameter(0)
  %zero = f32[] constant(0)
  %twice = f32[4]{0} add(%x, %x), control-predecessors={%zero}, statistics={visualizing_index=0,n=3}
  ROOT %r = f32[] reduce(%twice, %zero), dimensions={0}, to_apply=%sum
}
)";

Module CopyAll(const Module& from) {
  Module to(from.shared_context());
  ModuleCloner cloner(from, &to);
  cloner.CopyHeader();
  for (CompId c : ComputationPostOrder(from)) {
    cloner.AddComputation(c);
    for (InstrId id : from.comp(c).instructions) cloner.Clone(id);
    cloner.SetRoot(c);
  }
  to.set_entry(cloner.now(from.entry()));
  return to;
}

TEST(ModuleCloner, ACopyOfEverythingIsTheSameText) {
  const auto from = Parse(kProgram);
  ASSERT_TRUE(from.ok()) << from.status();
  EXPECT_EQ(PrintModule(CopyAll(*from)), PrintModule(*from));
}

TEST(ModuleCloner, OperandsPredecessorsAndCalledComputationsAreTheNewOnes) {
  const auto from = Parse(kProgram);
  ASSERT_TRUE(from.ok()) << from.status();
  Module to(from->shared_context());
  to.AddComputation("before");  // so that new ids are not the old ones
  const Shape* const scalar = from->instr(from->comp(from->entry()).root).shape;
  ModuleCloner cloner(*from, &to);
  const CompId entry = from->entry(), sum(0);
  ASSERT_EQ(from->comp(sum).name, "sum");
  cloner.AddComputation(sum, "plus");
  for (InstrId id : from->comp(sum).instructions) cloner.Clone(id);
  cloner.SetRoot(sum);
  cloner.AddComputation(entry);
  const std::vector<InstrId> old = from->comp(entry).instructions;
  EXPECT_FALSE(cloner.now(old[0]).valid());
  for (InstrId id : old) cloner.Clone(id);
  EXPECT_EQ(to.comp(cloner.now(sum)).name, "plus");
  EXPECT_EQ(to.instr(to.comp(cloner.now(sum)).root).opcode, Opcode::kAdd);
  const Instruction& reduce = to.instr(cloner.now(old[3]));
  EXPECT_EQ(reduce.as<ReduceAttrs>().to_apply, cloner.now(sum));
  EXPECT_EQ(to.operand(cloner.now(old[3]), 0), cloner.now(old[2]));
  EXPECT_EQ(reduce.shape, scalar);
  const RareAttributes* const rare = to.rare(to.instr(cloner.now(old[2])));
  ASSERT_NE(rare, nullptr);
  EXPECT_EQ(rare->control_predecessors, std::vector<InstrId>{cloner.now(old[1])});
  EXPECT_FALSE(rare->statistics.empty());
}

// A copy of the entry alone, whose instructions the tests choose.
struct EntryCopy {
  EntryCopy() : from(*Parse(kProgram)), to(from.shared_context()), cloner(from, &to) {
    made = cloner.AddComputation(from.entry());
  }
  InstrId old(int k) const { return from.comp(from.entry()).instructions[k]; }
  Module from, to;
  ModuleCloner cloner;
  CompId made;
};

TEST(ModuleCloner, WhatAnInstructionHasBecomeCanBeSaidInsteadOfCopied) {
  EntryCopy e;
  const InstrId x = e.cloner.Clone(e.old(0));
  e.cloner.Set(e.old(1), x);  // %zero is left out
  Instruction negate = e.cloner.CopyOf(e.old(2));
  negate.opcode = Opcode::kNegate;
  const InstrId now = e.cloner.Add(e.old(2), negate, {x}, e.made);
  EXPECT_EQ(e.cloner.now(e.old(2)), now);
  EXPECT_EQ(e.to.rare(e.to.instr(now)), nullptr);
  e.cloner.CopyOrder(e.old(2), now);
  const RareAttributes* const rare = e.to.rare(e.to.instr(now));
  ASSERT_NE(rare, nullptr);
  EXPECT_EQ(rare->control_predecessors, std::vector<InstrId>{x});
  EXPECT_TRUE(rare->statistics.empty());
}

// The order within a computation says nothing of an instruction of another one.
TEST(ModuleCloner, PredecessorsThatAreNotInTheComputationAreDropped) {
  EntryCopy e;
  e.cloner.Clone(e.old(0));
  const InstrId before_its_predecessor = e.cloner.Clone(e.old(2));
  const RareAttributes* const rare = e.to.rare(e.to.instr(before_its_predecessor));
  ASSERT_NE(rare, nullptr);
  EXPECT_TRUE(rare->control_predecessors.empty());
  EXPECT_FALSE(rare->statistics.empty());
}

}  // namespace
}  // namespace shardcall
