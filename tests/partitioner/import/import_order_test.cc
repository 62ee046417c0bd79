// SPDX-License-Identifier: Apache-2.0
// Calls that name an order become control dependencies; orders that cannot be are refused.
#include <gmock/gmock.h>

#include "shardcall/sharding/base/status.h"
#include "tests/partitioner/import/import_testing.h"

namespace shardcall {
namespace {

using testing::HasSubstr;

// "name = () control_dep(before, after)".
std::string Dep(const std::string& name, const std::string& operands,
                const std::string& shape = "()") {
  return absl::StrCat("  ", name, " = ", shape, " custom-call(", operands,
                      "), custom_call_target=\"control_dep\", custom_call_has_side_effect=true, "
                      "api_version=API_VERSION_TYPED_FFI, backend_config={}\n");
}
// Two values that do not need each other.
constexpr char kTwo[] = "  x = f32[4] parameter(0)\n  a = f32[4] sine(x)\n  b = f32[4] cosine(x)\n";
// Each instruction of the entry but the parameters, with what precedes it.
std::string Order(const Program& p) {
  std::vector<std::string> out;
  for (InstrId id : p.module.comp(p.module.entry()).instructions) {
    const Instruction& i = p.module.instr(id);
    if (i.opcode == Opcode::kParameter) continue;
    std::string line(i.name);
    if (const RareAttributes* rare = p.module.rare(i)) {
      for (InstrId before : rare->control_predecessors) {
        absl::StrAppend(&line, " after ", p.module.instr(before).name);
      }
    }
    out.push_back(line);
  }
  return absl::StrJoin(out, ", ");
}
absl::Status Refused(const std::string& body) { return TryImport(EntryModule(body)).status(); }

TEST(ImportOrder, WhatIsComputedLaterStandsLater) {
  const Program p = Import(EntryModule(absl::StrCat(kTwo, "  c = f32[4] exponential(x)\n") +
                                       Dep("o", "c, b") + Dep("q", "b, a") + Dep("again", "b, a") +
                                       "  ROOT r = (f32[4], f32[4], f32[4]) tuple(a, b, c)\n"));
  EXPECT_EQ(Order(p), "c, b after c, a after b, r");
}

TEST(ImportOrder, WhatFollowsFromTheOperandsIsNotNamedAgain) {
  const Program p =
      Import(EntryModule("  x = f32[4] parameter(0)\n  a = f32[4] sine(x)\n"
                         "  b = f32[4] cosine(a)\n" +
                         Dep("o", "a, b") + "  ROOT r = f32[4] negate(b)\n"));
  EXPECT_EQ(Order(p), "a, b, r");
}

TEST(ImportOrder, AStartMayBeNamedBesideItsEnd) {
  const Program p = Import(EntryModule(
      "  x = f32[4] parameter(0)\n"
      "  s = (f32[4], f32[8]) all-gather-start(x), dimensions={0}, replica_groups={{0,1}}, "
      "channel_id=1, use_global_device_ids=true\n"
      "  d = f32[8] all-gather-done(s)\n  a = f32[4] sine(x)\n" +
          Dep("o", "s, a") + Dep("q", "a, d") + "  ROOT r = (f32[4], f32[8]) tuple(a, d)\n",
      "num_partitions=2"));
  EXPECT_EQ(Order(p), "s, a after s, d after a, r");
}

TEST(ImportOrder, TheResultOfAnInlinedCallIsItsBodysRoot) {
  const Program p = Import(
      "HloModule test\nf {\n  y = f32[4] parameter(0)\n  ROOT e = f32[4] exponential(y)\n}\n"
      "ENTRY main {\n  x = f32[4] parameter(0)\n  c = f32[4] call(x), to_apply=f\n"
      "  a = f32[4] sine(x)\n" +
      Dep("o", "a, c") + "  ROOT r = (f32[4], f32[4]) tuple(a, c)\n}\n");
  EXPECT_EQ(Order(p), "a, e after a, r");
}

TEST(ImportOrder, ALoopThatIsComputedEarlierKeepsItsBody) {
  const Program p = Import(
      "HloModule test\nbody {\n  s = (f32[]) parameter(0)\n"
      "  v = f32[] get-tuple-element(s), index=0\n  u = f32[] sine(v)\n  w = f32[] cosine(v)\n" +
      Dep("o", "w, u") +
      "  n = f32[] add(u, w)\n  ROOT t = (f32[]) tuple(n)\n}\n"
      "cond {\n  s = (f32[]) parameter(0)\n  v = f32[] get-tuple-element(s), index=0\n"
      "  ROOT l = pred[] compare(v, v), direction=LT\n}\n"
      "ENTRY main {\n  x = f32[] parameter(0)\n  a = f32[] sine(x)\n  i = (f32[]) tuple(x)\n"
      "  loop = (f32[]) while(i), condition=cond, body=body\n"
      "  g = f32[] get-tuple-element(loop), index=0\n" +
      Dep("q", "g, a") + "  ROOT r = (f32[], f32[]) tuple(a, g)\n}\n");
  EXPECT_EQ(Order(p), "i, loop, g, a after g after loop, r");
  const RareAttributes* rare = p.module.rare(p.module.instr(FindInstr(p, "u")));
  ASSERT_NE(rare, nullptr);
  EXPECT_EQ(rare->control_predecessors, std::vector<InstrId>{FindInstr(p, "w")});
}

TEST(ImportOrder, AnElementIsThereWhenItsTupleIs) {
  const Program p = Import(
      EntryModule("  x = f32[4] parameter(0)\n  k = s32[4] parameter(1)\n"
                  "  s = (f32[4], s32[4]) custom-call(x, k), custom_call_target=\"Two\"\n"
                  "  g = f32[4] get-tuple-element(s), index=0\n  a = f32[4] sine(x)\n"
                  "  b = f32[4] cosine(x)\n" +
                  Dep("o", "g, a") +
                  // Only the element waits: a may be needed for the other one.
                  Dep("q", "b, g") + "  ROOT r = (f32[4], f32[4], f32[4]) tuple(a, b, g)\n"));
  EXPECT_EQ(Order(p), "s, b, g after b, a after g after s, r");
}

TEST(ImportOrder, AnAnnotatedValueIsTheValue) {
  const auto told = [](const std::string& name, const std::string& value) {
    return absl::StrCat("  ", name, " = f32[4] custom-call(", value,
                        "), custom_call_target=\"Sharding\", sharding={devices=[2]<=[2]}\n");
  };
  const std::string begin = kTwo + told("t", "a") + told("u", "b");
  const std::string end = "  ROOT r = (f32[4], f32[4]) tuple(t, u)\n";
  EXPECT_EQ(Order(Import(EntryModule(begin + Dep("o", "u, t") + end, "num_partitions=2"))),
            "b, a after b, t, t.1, u, u.1, r");
  // Two names of one value are no order.
  EXPECT_EQ(Order(Import(EntryModule(begin + Dep("o", "a, t") + end, "num_partitions=2"))),
            "a, t, t.1, b, u, u.1, r");
}

TEST(ImportOrder, ParametersAreThereFromTheStart) {
  const Program p =
      Import(EntryModule("  x = f32[4] parameter(0)\n  y = f32[4] parameter(1)\n"
                         "  a = f32[4] sine(x)\n" +
                         Dep("o", "a, y") + Dep("q", "y, a") + "  ROOT r = f32[4] add(a, y)\n"));
  EXPECT_EQ(Order(p), "a, r");
  EXPECT_EQ(p.module.rare(p.module.instr(FindInstr(p, "y"))), nullptr);
}

TEST(ImportOrder, ValuesThatOnlyACallNamesAreNotComputed) {
  const Program p = Import(EntryModule(kTwo + Dep("o", "a, b") + "  ROOT r = f32[4] negate(a)\n"));
  EXPECT_EQ(Order(p), "a, r");
}

TEST(ImportOrder, TheEmptyResultOfACallMayBeUsed) {
  const Program p =
      Import(EntryModule(kTwo + Dep("o", "a, b") + "  ROOT r = (f32[4], ()) tuple(b, o)\n"));
  EXPECT_EQ(Order(p), "a, b after a, o, r");
  EXPECT_EQ(p.module.instr(FindInstr(p, "o")).opcode, Opcode::kTuple);
}

TEST(ImportOrder, OrdersThatCannotBeAreRefused) {
  constexpr char kBegin[] =
      "  x = f32[4] parameter(0)\n  a = f32[4] sine(x)\n  b = f32[4] cosine(a)\n"
      "  c = f32[4] exponential(x)\n";
  constexpr char kEnd[] = "  ROOT r = f32[4] add(b, c)\n";
  const auto code = [&](const std::string& calls) {
    return std::string(DiagnosticCode(Refused(absl::StrCat(kBegin, calls, kEnd))));
  };
  EXPECT_EQ(code(Dep("o", "b, c")), "");
  EXPECT_EQ(code(Dep("o", "b, a")), "E165");  // against the data flow
  EXPECT_EQ(code(Dep("o", "a, a")), "E165");
  EXPECT_EQ(code(Dep("o", "b, c") + Dep("q", "c, a")), "E165");  // against another call
  const absl::Status status = Refused(absl::StrCat(kBegin, Dep("o", "b, a"), kEnd));
  EXPECT_THAT(status.message(),
              HasSubstr("expected no instruction that has to be computed before itself"));
  EXPECT_THAT(status.message(), HasSubstr("found %a needs %b needs %a"));
}

TEST(ImportOrder, CallsThatNameNoTwoValuesAreRefused) {
  const auto code = [&](const std::string& call) {
    return std::string(
        DiagnosticCode(Refused(absl::StrCat("  x = f32[4] parameter(0)\n  a = f32[4] sine(x)\n",
                                            call, "  ROOT r = f32[4] negate(a)\n"))));
  };
  EXPECT_EQ(code(Dep("o", "x, a")), "");
  EXPECT_EQ(code(Dep("o", "a")), "E165");
  EXPECT_EQ(code(Dep("o", "x, a, a")), "E165");
  EXPECT_EQ(code(Dep("o", "x, a", "f32[4]")), "E165");
  EXPECT_EQ(code(Dep("o", "x, a", "(f32[4])")), "E165");
}

}  // namespace
}  // namespace shardcall
