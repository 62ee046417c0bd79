// SPDX-License-Identifier: Apache-2.0
// Calls that one device runs, side effects, and the order that a program states.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "tests/support/verify_text.h"

namespace shardcall {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

// Who ran target "noted", which gives its first operand back.
struct Noted {
  std::mutex mutex;
  std::multiset<int> devices;
};

struct Rig {
  Rig() {
    HandlerEntry entry;
    entry.target = "noted";
    entry.host = [this](const HandlerContext& context, absl::Span<const BufferView> in,
                        absl::Span<const BufferView> out) {
      if (context.num_devices > 1) {
        const std::lock_guard<std::mutex> lock(noted.mutex);
        noted.devices.insert(context.device_ordinal);
      }
      for (size_t k = 0; k < out.size(); ++k) {
        if (out[k].data == nullptr) continue;
        std::memcpy(out[k].data, in[0].data, in[0].byte_size());
      }
      return absl::OkStatus();
    };
    EXPECT_TRUE(handlers.Register(std::move(entry)).ok());
    options.targets = &targets;
    options.handlers = &handlers;
  }
  Noted noted;
  TargetRegistry targets;
  HandlerRegistry handlers;
  TextOptions options;
};

std::string Program(const std::string& type, const std::string& sharding, bool effect = true) {
  return absl::StrReplaceAll(
      R"(HloModule m, num_partitions=4

ENTRY e {
  x = T[8,3] parameter(0), sharding={devices=[4,1]<=[4]}
  c = T[8,3] custom-call(x), custom_call_target="noted"EFFECT
  ROOT r = T[8,3] copy(c), sharding={devices=[4,1]<=[4]}
}
)",
      {{"T[", type + "["},
       {"EFFECT", absl::StrCat(effect ? ", custom_call_has_side_effect=true" : "",
                               sharding.empty() ? "" : ", sharding=", sharding)}});
}

TEST(OneDevice, RunsOnThatDeviceAloneAndAllGetItsBits) {
  // f8e8m0fnu has no zero.
  for (const char* type :
       {"f32", "s32", "bf16", "pred", "c64", "f64", "u8", "s16", "f8e8m0fnu", "f8e5m2"}) {
    for (const bool effect : {true, false}) {
      SCOPED_TRACE(absl::StrCat(type, effect ? " with effect" : ""));
      Rig rig;
      EXPECT_EQ(WhyNotEqual(Program(type, "{maximal device=2}", effect), rig.options), "");
      EXPECT_THAT(rig.noted.devices, ElementsAre(2));
    }
  }
}

TEST(OneDevice, AnEffectWithoutAResultThatIsUsedStays) {
  for (const char* result : {"()", "token[]", "f32[]"}) {
    SCOPED_TRACE(result);
    Rig rig;
    const std::string sharding =
        absl::string_view(result) == "()" ? "{{maximal device=1}}" : "{maximal device=1}";
    const std::string text = absl::StrReplaceAll(R"(HloModule m, num_partitions=4

ENTRY e {
  x = f32[] parameter(0)
  c = RESULT custom-call(x), custom_call_target="noted", custom_call_has_side_effect=true, sharding=SHARDING
  ROOT r = f32[] negate(x)
}
)",
                                                 {{"RESULT", result}, {"SHARDING", sharding}});
    EXPECT_EQ(WhyNotEqual(text, rig.options), "");
    EXPECT_THAT(rig.noted.devices, ElementsAre(1));
  }
}

TEST(OneDevice, InALoopItRunsOncePerIteration) {
  Rig rig;
  EXPECT_EQ(WhyNotEqual(R"(HloModule m, num_partitions=4

body {
  s = (s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  one = s32[] constant(1)
  n = s32[] add(i, one)
  x = f32[8] get-tuple-element(s), index=1
  c = f32[8] custom-call(x), custom_call_target="noted", custom_call_has_side_effect=true, sharding={maximal device=3}
  y = f32[8] add(c, x)
  ROOT t = (s32[], f32[8]) tuple(n, y)
}

condition {
  s = (s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  three = s32[] constant(3)
  ROOT r = pred[] compare(i, three), direction=LT
}

ENTRY e {
  x = f32[8] parameter(0), sharding={devices=[4]<=[4]}
  zero = s32[] constant(0)
  init = (s32[], f32[8]) tuple(zero, x)
  w = (s32[], f32[8]) while(init), condition=condition, body=body
  ROOT r = f32[8] get-tuple-element(w), index=1
}
)",
                        rig.options),
            "");
  EXPECT_THAT(rig.noted.devices, ElementsAre(3, 3, 3));
}

// `op` on x: f32[8,4] and others, with {maximal device=2} on it.
std::string WithOp(const std::string& op) {
  return absl::StrReplaceAll(R"(HloModule m, num_partitions=4

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b)
}

less {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = pred[] compare(a, b), direction=LT
}

twice {
  a = f32[8,4] parameter(0)
  ROOT r = f32[8,4] add(a, a)
}

body {
  s = (s32[], f32[8,4]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  one = s32[] constant(1)
  n = s32[] add(i, one)
  x = f32[8,4] get-tuple-element(s), index=1
  y = f32[8,4] multiply(x, x)
  ROOT t = (s32[], f32[8,4]) tuple(n, y)
}

condition {
  s = (s32[], f32[8,4]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  three = s32[] constant(3)
  ROOT r = pred[] compare(i, three), direction=LT
}

ENTRY e {
  x = f32[8,4] parameter(0), sharding={devices=[4,1]<=[4]}
  w = f32[4,4] parameter(1), sharding={devices=[1,4]<=[4]}
  k = s32[] parameter(2)
  zero = f32[] constant(0)
  pair = (s32[], f32[8,4]) tuple(k, x)
  small = pred[] compare(k, k), direction=LT
  OP
  ROOT r = f32[8,4] negate(c), sharding={devices=[4,1]<=[4]}
}
)",
                             {{"OP", op}});
}

TEST(OneDevice, RunsOpsOfEveryKind) {
  const std::string there = ", sharding={maximal device=2}";
  const std::pair<const char*, std::string> ops[] = {
      {"abs", "c = f32[8,4] abs(x)AT"},
      {"multiply", "c = f32[8,4] multiply(x, x)AT"},
      {"dot", "c = f32[8,4] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}AT"},
      {"iota", "c = f32[8,4] iota(), iota_dimension=0AT"},
      {"reverse", "c = f32[8,4] reverse(x), dimensions={0}AT"},
      {"sort", "c = f32[8,4] sort(x), dimensions={0}, to_apply=lessAT"},
      {"reduce",
       "s = f32[4] reduce(x, zero), dimensions={0}, to_apply=addAT\n"
       "  c = f32[8,4] broadcast(s), dimensions={1}"},
      {"dynamic-update-slice", "c = f32[8,4] dynamic-update-slice(x, w, k, k)AT"},
      {"call", "c = f32[8,4] call(x), to_apply=twiceAT"},
      {"conditional",
       "c = f32[8,4] conditional(small, x, x), true_computation=twice, "
       "false_computation=twiceAT"},
      {"while",
       "l = (s32[], f32[8,4]) while(pair), condition=condition, body=bodyAT\n"
       "  c = f32[8,4] get-tuple-element(l), index=1"}};
  for (const auto& [name, op] : ops) {
    SCOPED_TRACE(name);
    const std::string text = WithOp(absl::StrReplaceAll(op, {{"AT", there}}));
    const auto p = PartitionText(text, {});
    ASSERT_TRUE(p.ok()) << p.status();
    const std::string local = LocalText(**p);
    const Module& m = (*p)->local.module;
    // In the entry stands no op of that kind but those that choose the device.
    int branches = 0;
    for (InstrId id : m.comp(m.entry()).instructions) {
      const Opcode opcode = m.instr(id).opcode;
      branches += opcode == Opcode::kConditional;
      if (OpcodeText(opcode) == name && absl::string_view(name) != "conditional") {
        EXPECT_TRUE(m.instr(id).shape->rank() == 0) << local;
      }
    }
    EXPECT_EQ(branches, 1) << local;
    EXPECT_THAT(local, HasSubstr("constant(2)"));
    EXPECT_EQ((*p)->plan.fallbacks.size(), 0);
    EXPECT_EQ(WhyNotEqual(text, {}), "");
  }
}

TEST(OneDevice, ConstantsParametersAndTuplesNeedNoDevice) {
  const std::string text = R"(HloModule m, num_partitions=4

ENTRY e {
  x = f32[8] parameter(0), sharding={maximal device=1}
  c = f32[8] constant({1,2,3,4,5,6,7,8}), sharding={maximal device=1}
  t = (f32[8], f32[8]) tuple(x, c), sharding={{maximal device=1}, {maximal device=1}}
  a = f32[8] get-tuple-element(t), index=0, sharding={maximal device=1}
  b = f32[8] get-tuple-element(t), index=1, sharding={maximal device=1}
  ROOT r = f32[8] add(a, b), sharding={devices=[4]<=[4]}
}
)";
  const auto p = PartitionText(text, {});
  ASSERT_TRUE(p.ok()) << p.status();
  EXPECT_EQ(CountOpcode(**p, Opcode::kConditional), 0);
  EXPECT_TRUE((*p)->local.collectives.empty());
  EXPECT_EQ(WhyNotEqual(text, {}), "");
}

TEST(OneDevice, AnEffectInACallOfThatDeviceHappensThereOnce) {
  Rig rig;
  EXPECT_EQ(WhyNotEqual(R"(HloModule m, num_partitions=4

f {
  a = f32[8] parameter(0)
  ROOT c = f32[8] custom-call(a), custom_call_target="noted", custom_call_has_side_effect=true
}

ENTRY e {
  x = f32[8] parameter(0), sharding={devices=[4]<=[4]}
  ROOT r = f32[8] call(x), to_apply=f, sharding={maximal device=3}
}
)",
                        rig.options),
            "");
  EXPECT_THAT(rig.noted.devices, ElementsAre(3));
}

TEST(OneDevice, CollectivesInWhatOneDeviceRunsAreRefused) {
  EXPECT_THAT(PartitionText(R"(HloModule m, num_partitions=4

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b)
}

f {
  a = f32[8] parameter(0)
  ROOT sum = f32[8] all-reduce(a), channel_id=1, replica_groups={{0,1,2,3}}, use_global_device_ids=true, to_apply=add
}

ENTRY e {
  x = f32[8] parameter(0)
  ROOT r = f32[8] call(x), to_apply=f, sharding={maximal device=3}
}
)",
                            {}),
              Fails("E106", "%sum stands in what device 3 alone runs (call %r"));
}

TEST(OneDevice, TransfersOfOneDeviceEndWhereTheyStart) {
  EXPECT_THAT(PartitionText(R"(HloModule m, num_partitions=4

ENTRY e {
  x = f32[8] parameter(0)
  t = token[] after-all()
  s = (f32[8], u32[], token[]) send(x, t), channel_id=2, sharding={maximal device=1}
  p = ((f32[8], u32[], token[])) tuple(s)
  q = (f32[8], u32[], token[]) get-tuple-element(p), index=0
  d = token[] send-done(q), channel_id=2, sharding={maximal device=1}
  ROOT r = f32[8] negate(x)
}
)",
                            {}),
              Fails("E106", "starts in one place and ends in another"));
}

TEST(OneDevice, ResultsStayThereForOpsOfTheSameDevice) {
  Rig rig;
  const std::string text = R"(HloModule m, num_partitions=4

ENTRY e {
  x = f32[8] parameter(0), sharding={devices=[4]<=[4]}
  a = f32[8] abs(x), sharding={maximal device=2}
  b = (f32[8], f32[]) custom-call(a), custom_call_target="noted", custom_call_has_side_effect=true, sharding={maximal device=2}
  c = f32[8] get-tuple-element(b), index=0
  d = f32[8] multiply(c, a), sharding={maximal device=2}
  ROOT r = f32[8] negate(d), sharding={devices=[4]<=[4]}
}
)";
  const auto p = PartitionText(text, rig.options);
  ASSERT_TRUE(p.ok()) << p.status();
  // x is gathered, and d brought to all.
  EXPECT_EQ((*p)->local.collectives.size(), 2) << LocalText(**p);
  EXPECT_EQ(WhyNotEqual(text, rig.options), "");
}

TEST(SideEffects, WithoutAShardingNameTwoFixes) {
  Rig rig;
  const std::string scalar = R"(HloModule m, num_partitions=4

ENTRY e {
  x = f32[] parameter(0)
  c = f32[] custom-call(x), custom_call_target="noted", custom_call_has_side_effect=trueSHARDING
  ROOT r = f32[] add(c, x)
}
)";
  auto with = [&](const std::string& sharding) {
    return absl::StrReplaceAll(scalar, {{"SHARDING", sharding}});
  };
  for (const char* sharding : {"", ", sharding={replicated}"}) {
    const absl::Status s = PartitionText(with(sharding), rig.options).status();
    EXPECT_THAT(s, Fails("E104", "target \"noted\" (%c) has side effects"));
    EXPECT_THAT(s, Fails("E104", "sharding={maximal device=0}"));
    EXPECT_THAT(s, Fails("E104", "can_side_effecting_have_replicated_sharding"));
  }
  // One diagnostic, too, where the call needs a rule.
  const std::string of_sharded(PartitionText(R"(HloModule m, num_partitions=4
ENTRY e {
  x = f32[8] parameter(0), sharding={devices=[4]<=[4]}
  ROOT c = f32[8] custom-call(x), custom_call_target="unruled", custom_call_has_side_effect=true
})",
                                             rig.options)
                                   .status()
                                   .message());
  EXPECT_THAT(of_sharded, AllOf(HasSubstr("E101"), HasSubstr("sharding={maximal device=0}"),
                                Not(HasSubstr("E104"))));
  PartitionerCallbacks may;
  may.can_side_effecting_have_replicated_sharding = true;
  ASSERT_TRUE(rig.targets.RegisterCustomCallPartitioner("noted", may).ok());
  EXPECT_EQ(WhyNotEqual(with(", sharding={replicated}"), rig.options), "");
  EXPECT_THAT(rig.noted.devices, ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(PartitionText(with(""), rig.options), Fails("E104", "without a sharding"));
}

TEST(SideEffects, OfTargetsWithARuleHappenOnEveryShard) {
  Rig rig;
  ASSERT_TRUE(rig.targets.RegisterRule("noted", {.rule = "a b -> a b"}).ok());
  EXPECT_EQ(WhyNotEqual(Program("f32", ""), rig.options), "");
  EXPECT_THAT(rig.noted.devices, ElementsAre(0, 1, 2, 3));
}

TEST(BatchDimsOfTheCall, AreReadFromTheFrontendAttribute) {
  Rig rig;
  ASSERT_TRUE(rig.targets.RegisterBatchPartitionable("noted", kBatchDimsOfCall).ok());
  const std::string text = absl::StrReplaceAll(
      Program("f32", "", false),
      {{"target=\"noted\"", "target=\"noted\", frontend_attributes={num_batch_dims=\"1\"}"}});
  const auto p = PartitionText(text, rig.options);
  ASSERT_TRUE(p.ok()) << p.status();
  EXPECT_TRUE((*p)->local.collectives.empty());
  EXPECT_EQ(WhyNotEqual(text, rig.options), "");
  EXPECT_THAT(PartitionText(Program("f32", "", false), rig.options),
              Fails("E101", "does not say its batch dims"));
}

TEST(ControlEdges, StayBetweenTheSameOps) {
  Rig rig;
  ASSERT_TRUE(rig.targets.RegisterRule("noted", {.rule = "a b -> a b"}).ok());
  const std::string text = R"(HloModule m, num_partitions=4

ENTRY e {
  x = f32[8,4] parameter(0), sharding={devices=[4,1]<=[4]}
  first = f32[8,4] custom-call(x), custom_call_target="noted", sharding={devices=[4,1]<=[4]}
  sum = f32[4,8] transpose(x), dimensions={1,0}, control-predecessors={first}
  second = f32[8,4] custom-call(x), custom_call_target="noted", control-predecessors={first, sum}, sharding={devices=[1,4]<=[4]}
  ROOT r = (f32[8,4], f32[4,8]) tuple(second, sum), sharding={{devices=[1,4]<=[4]}, {devices=[4,1]<=[4]}}
}
)";
  const auto p = PartitionText(text, rig.options);
  ASSERT_TRUE(p.ok()) << p.status();
  const std::string local = LocalText(**p);
  EXPECT_THAT(local, HasSubstr("transpose(%"));
  std::vector<std::string> edges;
  for (size_t at = 0; (at = local.find("control-predecessors={", at)) != local.npos; ++at) {
    edges.push_back(local.substr(at, local.find('}', at) - at));
  }
  ASSERT_EQ(edges.size(), 2) << local;
  EXPECT_EQ(std::count(edges[0].begin(), edges[0].end(), '%'), 1);
  EXPECT_EQ(std::count(edges[1].begin(), edges[1].end(), '%'), 2);
  EXPECT_EQ(WhyNotEqual(text, rig.options), "");
}

// An instruction for which nothing is emitted: what waits for it waits for its predecessors, and it
// waits for nothing itself.
TEST(ControlEdges, WhatEmitsNothingHandsItsPredecessorsOn) {
  const Rig rig;
  const auto local = [&](const std::string& body) {
    const std::string text = absl::StrCat(R"(HloModule m, num_partitions=4

ENTRY e {
  x = f32[8,4] parameter(0), sharding={devices=[4,1]<=[4]}
  y = f32[8,4] exponential(x)
  a = f32[8,4] sine(y)
)",
                                          body, "}\n");
    const auto p = PartitionText(text, rig.options);
    EXPECT_TRUE(p.ok()) << p.status();
    EXPECT_EQ(WhyNotEqual(text, rig.options), "");
    return p.ok() ? LocalText(**p) : "";
  };
  constexpr char kTold[] =
      R"(f32[8,4] custom-call(y), custom_call_target="Sharding", sharding={devices=[4,1]<=[4]})";
  const std::string annotation = local(absl::StrCat("  t = ", kTold, R"(, control-predecessors={a}
  b = f32[8,4] cosine(x), control-predecessors={t}
  ROOT r = (f32[8,4], f32[8,4], f32[8,4]) tuple(a, b, t)
)"));
  EXPECT_THAT(annotation, HasSubstr("cosine(%x), control-predecessors={%a}"));
  EXPECT_THAT(annotation, HasSubstr("%y = f32[2,4]{1,0} exponential(%x)\n"));
  const std::string element = local(R"(  pair = (f32[8,4], f32[8,4]) tuple(x, y)
  t = f32[8,4] get-tuple-element(pair), index=1, control-predecessors={a}
  b = f32[8,4] cosine(t), control-predecessors={t, a}
  ROOT r = (f32[8,4], f32[8,4]) tuple(b, t), control-predecessors={a}
)");
  EXPECT_THAT(element, HasSubstr("cosine(%all-gather), control-predecessors={%a}"));
  // What follows from the operands is not said again.
  EXPECT_THAT(local("  ROOT b = f32[8,4] cosine(a), control-predecessors={y, a}\n"),
              HasSubstr("cosine(%a), control-predecessors={%y}"));
}

TEST(Survival, RulesKeepAliasesLayoutsEffectsAndAttributes) {
  Rig rig;
  ASSERT_TRUE(rig.targets.RegisterRule("noted", {.rule = "a b -> a b"}).ok());
  const auto p = PartitionText(R"(HloModule m, num_partitions=4

ENTRY e {
  x = f32[8,4]{0,1} parameter(0), sharding={devices=[4,1]<=[4]}
  c = f32[8,4]{0,1} custom-call(x), custom_call_target="noted", operand_layout_constraints={f32[8,4]{0,1}}, custom_call_has_side_effect=true, output_to_operand_aliasing={{}: (0, {})}, api_version=API_VERSION_TYPED_FFI, frontend_attributes={kind="test"}, backend_config={k = 1 : i64}
  ROOT r = f32[8,4]{0,1} copy(c)
}
)",
                               rig.options);
  ASSERT_TRUE(p.ok()) << p.status();
  EXPECT_THAT(LocalText(**p),
              AllOf(HasSubstr("f32[2,4]{0,1} custom-call("),
                    HasSubstr("operand_layout_constraints={f32[2,4]{0,1}}"),
                    HasSubstr("custom_call_has_side_effect=true"),
                    HasSubstr("output_to_operand_aliasing={{}: (0, {})}"),
                    HasSubstr("frontend_attributes={kind=\"test\"}"),
                    HasSubstr("backend_config={k = 1 : i64}"), Not(HasSubstr("sharding="))));
}

TEST(Survival, AliasesThatARuleTearsApartAreRefused) {
  Rig rig;
  ASSERT_TRUE(rig.targets.RegisterRule("noted", {.rule = "a b -> b a"}).ok());
  EXPECT_THAT(PartitionText(R"(HloModule m, num_partitions=4

ENTRY e {
  x = f32[8,8] parameter(0), sharding={devices=[4,1]<=[4]}
  ROOT c = f32[8,8] custom-call(x), custom_call_target="noted", output_to_operand_aliasing={{}: (0, {})}
}
)",
                            rig.options),
              Fails("E122", "result 0 aliases operand 0"));
}

}  // namespace
}  // namespace shardcall
