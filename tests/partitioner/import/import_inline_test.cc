// SPDX-License-Identifier: Apache-2.0
// Inlining: what is copied, what is shared, what is left out.
#include <set>

#include "shardcall/partitioner/ir/verifier/verifier.h"
#include "tests/partitioner/import/import_testing.h"

namespace shardcall {
namespace {

int CountOpcode(const Program& p, Opcode opcode) {
  int n = 0;
  for (int i = 0; i < p.module.num_instructions(); ++i) {
    n += p.module.instr(InstrId(i)).opcode == opcode;
  }
  return n;
}

constexpr char kTwoCalls[] = R"hlo(HloModule test, num_partitions=8

inner {
  a = f32[4]{0} parameter(0)
  unused = f32[4]{0} parameter(1)
  dead = f32[4]{0} negate(a)
  ROOT twice = f32[4]{0} add(a, a), metadata={op_name="add" stack_frame_id=7}
}

never {
  ROOT b = f32[4]{0} parameter(0)
}

ENTRY main {
  x = f32[4]{0} parameter(0)
  one = f32[4]{0} call(x, x), to_apply=inner, metadata={op_name="jit(f)/jit(g)" stack_frame_id=3}
  ROOT two = f32[4]{0} call(one, x), to_apply=inner
}
)hlo";

TEST(ImportInline, CallsVanishAndEachCopyHasItsOwnNames) {
  const Program p = Import(kTwoCalls);
  EXPECT_EQ(p.module.num_computations(), 1);
  EXPECT_EQ(p.module.num_instructions(), 3);  // the parameter and two adds
  const auto& list = p.module.comp(p.module.entry()).instructions;
  EXPECT_EQ(p.module.instr(list[1]).name, "twice");
  EXPECT_EQ(p.module.instr(list[2]).name, "twice.1");
  EXPECT_EQ(p.module.operand(list[2], 0), list[1]);
  EXPECT_EQ(p.module.comp(p.module.entry()).root, list[2]);
}

TEST(ImportInline, ElementsOfACallsTupleAreItsValues) {
  const Program p = Import(R"hlo(HloModule test, num_partitions=8

pair {
  a = f32[4]{0} parameter(0)
  b = f32[4]{0} negate(a)
  c = f32[4]{0} sine(a)
  ROOT t = (f32[4]{0}, f32[4]{0}) tuple(b, c)
}

ENTRY main {
  x = f32[4]{0} parameter(0)
  p = (f32[4]{0}, f32[4]{0}) call(x), to_apply=pair
  b = f32[4]{0} get-tuple-element(p), index=0
  c = f32[4]{0} get-tuple-element(p), index=1, sharding={devices=[8]<=[8]}
  ROOT r = f32[4]{0} add(b, c)
}
)hlo");
  const InstrId sum = p.module.comp(p.module.entry()).root;
  EXPECT_EQ(p.module.instr(p.module.operand(sum, 0)).opcode, Opcode::kNegate);
  // What says a sharding stays.
  EXPECT_EQ(p.module.instr(p.module.operand(sum, 1)).opcode, Opcode::kGetTupleElement);
}

TEST(ImportInline, OpNamesAreThoseOfTheCallerBeforeTheirOwnAndFramesAreKept) {
  const Program p = Import(kTwoCalls);
  const Metadata* m = p.module.instr(FindInstr(p, "twice")).metadata;
  ASSERT_NE(m, nullptr);
  EXPECT_EQ(m->op_name, "jit(f)/jit(g)/add");
  EXPECT_EQ(p.module.instr(FindInstr(p, "twice.1")).metadata->op_name, "add");
}

TEST(ImportInline, CallsStayWhereInliningIsNotWanted) {
  const Program p = Import(kTwoCalls, {.inline_calls = false});
  EXPECT_EQ(CountOpcode(p, Opcode::kCall), 2);
  EXPECT_EQ(p.module.num_computations(), 2);  // `never` is unreachable
  // Parameters of a call that stays stand for themselves.
  const InstrId a = FindInstr(p, "a");
  EXPECT_EQ(p.leaves.canonical(a), p.leaves.leaf(a));
}

TEST(ImportInline, ExponentialCallsEndAtTheLimitAndStayCalls) {
  std::string text = "HloModule test\n\ng0 {\n  a = f32[] parameter(0)\n";
  text += "  ROOT r = f32[] add(a, a)\n}\n\n";
  for (int k = 1; k <= 40; ++k) {
    absl::StrAppend(&text, "g", k, " {\n  a = f32[] parameter(0)\n  b = f32[] call(a), to_apply=g",
                    k - 1, "\n  ROOT c = f32[] call(b), to_apply=g", k - 1, "\n}\n\n");
  }
  text += "ENTRY main {\n  x = f32[] parameter(0)\n  ROOT y = f32[] call(x), to_apply=g40\n}\n";
  const Program p = Import(text);
  EXPECT_LT(p.module.num_instructions(), 4 * 200 + 10000);
  EXPECT_GT(CountOpcode(p, Opcode::kCall), 0);
}

TEST(ImportInline, LoopBodiesAreCopiedPerLoopAndReducersAreShared) {
  const Program p = Import(R"(HloModule test

sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}

body {
  t = (s32[], f32[4]{0}) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  v = f32[4]{0} get-tuple-element(t), index=1
  ROOT r = (s32[], f32[4]{0}) tuple(i, v)
}

cond {
  t = (s32[], f32[4]{0}) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  ten = s32[] constant(10)
  ROOT lt = pred[] compare(i, ten), direction=LT
}

ENTRY main {
  x = (s32[], f32[4]{0}) parameter(0)
  w = (s32[], f32[4]{0}) while(x), condition=cond, body=body
  u = (s32[], f32[4]{0}) while(w), condition=cond, body=body
  v = f32[4]{0} get-tuple-element(u), index=1
  zero = f32[] constant(0)
  p = f32[] reduce(v, zero), dimensions={0}, to_apply=sum
  q = f32[] reduce(v, zero), dimensions={0}, to_apply=sum
  ROOT s = f32[] add(p, q)
}
)");
  EXPECT_EQ(p.module.num_computations(), 1 + 4 + 1);
  std::set<uint32_t> bodies;
  for (int i = 0; i < p.module.num_instructions(); ++i) {
    const Instruction& instr = p.module.instr(InstrId(i));
    if (instr.opcode == Opcode::kWhile) bodies.insert(instr.as<WhileAttrs>().body.value);
  }
  EXPECT_EQ(bodies.size(), 2);
}

TEST(ImportInline, FusionsOfAComputationThatIsCalledTwiceAreCopied) {
  const Program p = Import(R"(HloModule test

inner {
  a = f32[4]{0} parameter(0)
  ROOT n = f32[4]{0} negate(a)
}

fused {
  a = f32[4]{0} parameter(0)
  ROOT f = f32[4]{0} fusion(a), kind=kLoop, calls=inner
}

outer {
  a = f32[4]{0} parameter(0)
  ROOT f = f32[4]{0} fusion(a), kind=kLoop, calls=fused
}

ENTRY main {
  x = f32[4]{0} parameter(0)
  one = f32[4]{0} call(x), to_apply=outer
  ROOT two = f32[4]{0} call(one), to_apply=outer
}
)");
  EXPECT_EQ(p.module.num_computations(), 1 + 2 + 2);
  EXPECT_TRUE(VerifyModule(p.module, "t.hlo").ok()) << VerifyModule(p.module, "t.hlo");
}

TEST(ImportInline, DeadInstructionsGoAndSideEffectsStay) {
  const Program p = Import(EntryModule(R"(
  x = f32[4]{0} parameter(0)
  y = f32[4]{0} parameter(1)
  gone = f32[4]{0} negate(x)
  kept = f32[4]{0} exponential(x)
  said = () custom-call(kept), custom_call_target="log", custom_call_has_side_effect=true
  ROOT r = f32[4]{0} copy(x)
)"));
  EXPECT_EQ(p.module.num_instructions(), 5);
  FindInstr(p, "kept");
  FindInstr(p, "y");  // parameters belong to the signature
}

TEST(ImportInline, WhatOnlyAnUnreadResultOfACallNeedsGoesToo) {
  const Program p = Import(R"(HloModule test
sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}
f {
  x = f32[4]{0} parameter(0)
  zero = f32[] constant(0)
  unread = f32[] reduce(x, zero), dimensions={0}, to_apply=sum
  read = f32[4]{0} negate(x)
  ROOT t = (f32[4]{0}, f32[]) tuple(read, unread)
}
ENTRY main {
  x = f32[4]{0} parameter(0)
  y = (f32[4]{0}, f32[]) call(x), to_apply=f
  g = f32[] get-tuple-element(y), index=1
  ROOT h = f32[4]{0} get-tuple-element(y), index=0
}
)");
  EXPECT_EQ(p.module.num_instructions(), 2);  // x and read
  FindInstr(p, "read");
  const Program q = Import(R"(HloModule test
sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}
f {
  x = f32[4]{0} parameter(0)
  ignored = f32[] parameter(1)
  ROOT read = f32[4]{0} negate(x)
}
ENTRY main {
  x = f32[4]{0} parameter(0)
  zero = f32[] constant(0)
  unread = f32[] reduce(x, zero), dimensions={0}, to_apply=sum
  ROOT y = f32[4]{0} call(x, unread), to_apply=f
}
)");
  EXPECT_EQ(q.module.num_instructions(), 2);
  EXPECT_EQ(q.module.num_computations(), 1);
}

TEST(ImportInline, LoopsWithSideEffectsStayAlive) {
  const Program p = Import(R"(HloModule test
body {
  t = s32[] parameter(0)
  said = () custom-call(t), custom_call_target="log", custom_call_has_side_effect=true
  one = s32[] constant(1)
  ROOT r = s32[] add(t, one)
}
cond {
  t = s32[] parameter(0)
  ten = s32[] constant(10)
  ROOT lt = pred[] compare(t, ten), direction=LT
}
ENTRY main {
  x = s32[] parameter(0)
  w = s32[] while(x), condition=cond, body=body
  ROOT r = s32[] copy(x)
}
)");
  EXPECT_EQ(CountOpcode(p, Opcode::kWhile), 1);
}

TEST(ImportInline, AnnotationsInReducersGo) {
  const Program p = Import(R"(HloModule test, num_partitions=8
sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  c = f32[] add(a, b)
  ROOT d = f32[] custom-call(c), custom_call_target="Sharding", sharding={devices=[2,4]<=[8] last_tile_dims={manual, replicated}}
}
ENTRY main {
  x = f32[4]{0} parameter(0)
  zero = f32[] constant(0)
  ROOT p = f32[] reduce(x, zero), dimensions={0}, to_apply=sum
}
)");
  EXPECT_EQ(CountOpcode(p, Opcode::kCustomCall), 0);
}

TEST(ImportInline, ControlPredecessorsBackendConfigsAndFrontendAttributesAreKept) {
  const Program p = Import(EntryModule(R"(
  x = f32[4]{0} parameter(0)
  a = f32[4]{0} negate(x), backend_config={"k": 1}
  b = f32[4]{0} exponential(x), frontend_attributes={note="n"}, control-predecessors={%a}
  ROOT r = f32[4]{0} add(a, b)
)"));
  const InstrId b = FindInstr(p, "b");
  ASSERT_NE(p.module.rare(p.module.instr(b)), nullptr);
  ASSERT_EQ(p.module.rare(p.module.instr(b))->control_predecessors.size(), 1);
  EXPECT_EQ(p.module.rare(p.module.instr(b))->control_predecessors[0], FindInstr(p, "a"));
  EXPECT_EQ(p.module.instr(b).frontend->Find("note"), "n");
  EXPECT_FALSE(p.module.instr(FindInstr(p, "a")).backend_config.empty());
}

TEST(ImportInline, AnnotatedCallsLeaveTheirConstraintBehind) {
  const Program p = Import(R"(HloModule test, num_partitions=8
f {
  a = f32[16]{0} parameter(0), sharding={devices=[8]<=[8]}
  ROOT b = f32[16]{0} negate(a)
}
ENTRY main {
  x = f32[16]{0} parameter(0)
  y = f32[16]{0} call(x), to_apply=f, sharding={replicated}
  ROOT z = f32[16]{0} exponential(y)
}
)");
  EXPECT_EQ(ConstraintText(p, "a"), "[8@1]");
  EXPECT_EQ(ConstraintText(p, "y"), "[]");
  EXPECT_EQ(p.annotation[FindInstr(p, "y").value], AnnotationKind::kIdentity);
}

TEST(LeafTable, LoopResultsAreTheParametersOfBodyAndCondition) {
  const Program p = Import(R"(HloModule test
body {
  t = (s32[], f32[4]{0}) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  v = f32[4]{0} get-tuple-element(t), index=1
  n = f32[4]{0} negate(v)
  ROOT r = (s32[], f32[4]{0}) tuple(i, n)
}
cond {
  u = (s32[], f32[4]{0}) parameter(0)
  j = s32[] get-tuple-element(u), index=0
  ten = s32[] constant(10)
  ROOT lt = pred[] compare(j, ten), direction=LT
}
ENTRY main {
  a = s32[] parameter(0)
  b = f32[4]{0} parameter(1)
  x = (s32[], f32[4]{0}) tuple(a, b)
  w = (s32[], f32[4]{0}) while(x), condition=cond, body=body
  k = (s32[], f32[4]{0}) opt-barrier(w)
  ROOT o = f32[4]{0} get-tuple-element(k), index=1
}
)");
  const LeafTable& l = p.leaves;
  const LeafId carry = l.leaf(FindInstr(p, "w"), 1);
  EXPECT_EQ(l.canonical(carry), carry);
  EXPECT_EQ(l.canonical(FindInstr(p, "t"), 1), carry);
  EXPECT_EQ(l.canonical(FindInstr(p, "v")), carry);
  EXPECT_EQ(l.canonical(FindInstr(p, "u"), 1), carry);
  EXPECT_EQ(l.canonical(FindInstr(p, "o")), carry);
  EXPECT_EQ(l.canonical(FindInstr(p, "x"), 1), l.leaf(FindInstr(p, "b")));
  EXPECT_EQ(l.canonical(FindInstr(p, "r"), 1), l.leaf(FindInstr(p, "n")));
  EXPECT_EQ(l.instr(carry), FindInstr(p, "w"));
  EXPECT_EQ(l.index(carry), 1);
}

TEST(LeafTable, NestedTuplesAreFlatAndEmptyOnesHaveNoLeaves) {
  const Program p = Import(EntryModule(R"(
  a = f32[4]{0} parameter(0)
  b = (f32[2]{0}, (f32[3]{0}, f32[5]{0})) parameter(1)
  e = () tuple()
  t = ((), f32[4]{0}, (f32[2]{0}, (f32[3]{0}, f32[5]{0}))) tuple(e, a, b)
  c = (f32[2]{0}, (f32[3]{0}, f32[5]{0})) get-tuple-element(t), index=2
  d = (f32[3]{0}, f32[5]{0}) get-tuple-element(c), index=1
  ROOT o = f32[5]{0} get-tuple-element(d), index=1
)"));
  EXPECT_EQ(p.leaves.canonical(FindInstr(p, "o")), p.leaves.leaf(FindInstr(p, "b"), 2));
}

}  // namespace
}  // namespace shardcall
