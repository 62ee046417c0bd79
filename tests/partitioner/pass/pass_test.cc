// SPDX-License-Identifier: Apache-2.0
// The pipeline, dead code elimination and naming.
#include "shardcall/partitioner/pass/pass.h"

#include <gtest/gtest.h>

#include <set>

#include "shardcall/partitioner/ir/text/printer.h"
#include "shardcall/partitioner/ir/verifier/verifier.h"
#include "tests/support/verify_text.h"

namespace shardcall {
namespace {

using testing::HasSubstr;
using testing::Not;

Module Parse(const std::string& text) {
  absl::StatusOr<Module> m = ParseText(text);
  EXPECT_TRUE(m.ok()) << m.status();
  return *std::move(m);
}

PassResult Clean(const std::string& text) {
  absl::StatusOr<PassResult> r = MakeDeadCodeElimination()->Run(Parse(text));
  EXPECT_TRUE(r.ok()) << r.status();
  EXPECT_TRUE(VerifyModule(r->module, "").ok());
  return *std::move(r);
}

TEST(DeadCode, WhatNothingUsesGoesParametersStay) {
  const PassResult r = Clean(R"(HloModule m
ENTRY e {
  a = f32[4] parameter(0)
  unused = f32[4] parameter(1)
  dead = f32[4] add(a, a)
  deader = f32[4] negate(dead)
  ROOT live = f32[4] negate(a)
}
)");
  EXPECT_TRUE(r.changed);
  EXPECT_EQ(r.module.num_instructions(), 3);
  EXPECT_FALSE(r.moved_to[2].valid());
  EXPECT_FALSE(r.moved_to[3].valid());
  EXPECT_EQ(r.module.instr(r.moved_to[4]).name, "live");
}

TEST(DeadCode, EffectsStay) {
  const PassResult r = Clean(R"(HloModule m, num_partitions=2
f {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] add(x, y)
}
ENTRY e {
  a = f32[4] parameter(0)
  said = () custom-call(a), custom_call_target="log", custom_call_has_side_effect=true
  quiet = f32[4] custom-call(a), custom_call_target="pure"
  ROOT live = f32[4] negate(a)
}
)");
  const std::string text = PrintModule(r.module);
  EXPECT_THAT(text, HasSubstr("said"));
  EXPECT_THAT(text, Not(HasSubstr("quiet")));
  EXPECT_FALSE(r.comp_moved_to[0].valid()) << "nothing calls f";
  EXPECT_EQ(r.module.num_computations(), 1);
}

TEST(DeadCode, AModuleWithoutDeadCodeIsUnchanged) {
  const std::string text = R"(HloModule m
f {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] add(x, y)
}
ENTRY e {
  a = f32[4] parameter(0)
  z = f32[] constant(0)
  ROOT r = f32[] reduce(a, z), dimensions={0}, to_apply=f
}
)";
  const PassResult r = Clean(text);
  EXPECT_FALSE(r.changed);
  EXPECT_EQ(PrintModule(r.module), PrintModule(Parse(text)));
}

TEST(DeadCode, LoopBodiesAndControlPredecessorsLive) {
  const PassResult r = Clean(R"(HloModule m
body {
  p = (s32[], f32[2]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  v = f32[2] get-tuple-element(p), index=1
  one = s32[] constant(1)
  n = s32[] add(i, one)
  dead = f32[2] add(v, v)
  ROOT t = (s32[], f32[2]) tuple(n, v)
}
cond {
  p = (s32[], f32[2]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  two = s32[] constant(2)
  ROOT r = pred[] compare(i, two), direction=LT
}
ENTRY e {
  a = f32[2] parameter(0)
  z = s32[] constant(0)
  before = f32[2] negate(a)
  t = (s32[], f32[2]) tuple(z, a)
  w = (s32[], f32[2]) while(t), condition=cond, body=body, control-predecessors={before}
  ROOT r = f32[2] get-tuple-element(w), index=1
}
)");
  const std::string text = PrintModule(r.module);
  EXPECT_THAT(text, HasSubstr("before"));
  EXPECT_THAT(text, Not(HasSubstr("dead")));
  EXPECT_EQ(r.module.num_computations(), 3);
}

TEST(Naming, GivenNamesStayAndMadeOnesAreUnique) {
  Module m = Parse(R"(HloModule m
ENTRY e {
  add = f32[2] parameter(0)
  add.1 = f32[2] add(add, add)
  negate = f32[2] negate(add.1)
  ROOT r = f32[2] multiply(negate, add)
}
)");
  m.mutable_instr(InstrId(1)).name = "add";  // a copy of a name
  m.mutable_instr(InstrId(2)).name = "";
  m.mutable_instr(InstrId(3)).name = "negate";
  AssignNames(&m);
  std::set<std::string> names;
  for (int i = 0; i < m.num_instructions(); ++i)
    names.insert(std::string(m.instr(InstrId(i)).name));
  EXPECT_EQ(names.size(), 4);
  EXPECT_EQ(m.instr(InstrId(0)).name, "add");
  EXPECT_EQ(m.instr(InstrId(3)).name, "negate");
  EXPECT_EQ(m.instr(InstrId(2)).name, "negate.1");
}

class Recorder : public Pass {
 public:
  explicit Recorder(absl::Status status) : status_(std::move(status)) {}
  absl::string_view name() const override { return "recorder"; }
  absl::StatusOr<PassResult> Run(const Module& module) override {
    if (!status_.ok()) return status_;
    return MakeDeadCodeElimination()->Run(module);
  }

 private:
  absl::Status status_;
};

constexpr char kTwo[] = R"(HloModule m
ENTRY e {
  a = f32[2] parameter(0)
  d = f32[2] add(a, a)
  ROOT r = f32[2] negate(a)
}
)";

TEST(Pipeline, PassesRunInOrderAndInstructionsAreFollowed) {
  std::vector<std::unique_ptr<Pass>> passes;
  passes.push_back(std::make_unique<Recorder>(absl::OkStatus()));
  passes.push_back(MakeDeadCodeElimination());
  std::vector<std::string> dumped;
  PipelineOptions options;
  options.verify = true;
  options.dump = [&](absl::string_view name, const Module&) {
    dumped.push_back(std::string(name));
  };
  const absl::StatusOr<PassResult> r = RunPipeline(Parse(kTwo), passes, options);
  ASSERT_TRUE(r.ok()) << r.status();
  EXPECT_EQ(dumped.size(), 2);
  EXPECT_EQ(dumped[0], "recorder");
  EXPECT_TRUE(r->changed);
  EXPECT_FALSE(r->moved_to[1].valid());
  EXPECT_EQ(r->module.instr(r->moved_to[2]).name, "r");
}

TEST(Pipeline, AFailingPassEndsIt) {
  std::vector<std::unique_ptr<Pass>> passes;
  passes.push_back(std::make_unique<Recorder>(absl::InternalError("broken")));
  passes.push_back(MakeDeadCodeElimination());
  EXPECT_THAT(RunPipeline(Parse(kTwo), passes, {}), Fails("", "broken"));
}

// Turns the root's shape wrong.
class Breaker : public Pass {
 public:
  absl::string_view name() const override { return "breaker"; }
  absl::StatusOr<PassResult> Run(const Module& module) override {
    absl::StatusOr<PassResult> r = MakeDeadCodeElimination()->Run(module);
    Context& c = r->module.context();
    const InstrId root = r->module.comp(r->module.entry()).root;
    r->module.mutable_instr(root).shape = c.WithDefaultLayout(c.MakeArray(ElementType::kF32, {3}));
    return r;
  }
};

TEST(Pipeline, TheVerifierNamesThePassThatBrokeTheModule) {
  std::vector<std::unique_ptr<Pass>> passes;
  passes.push_back(std::make_unique<Breaker>());
  PipelineOptions options;
  options.verify = true;
  EXPECT_THAT(RunPipeline(Parse(kTwo), passes, options), Fails("", "after pass breaker"));
}

}  // namespace
}  // namespace shardcall
