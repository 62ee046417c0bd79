// SPDX-License-Identifier: Apache-2.0
// StableHLO that is written is read again as the same program. What XLA makes of it is compared in
// tests/differential/stablehlo_diff.py.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "shardcall/partitioner/ir/iota_groups.h"
#include "shardcall/partitioner/ir/opcode.h"
#include "shardcall/partitioner/ir/stablehlo/plain_ops.h"
#include "shardcall/partitioner/ir/stablehlo/reader.h"
#include "shardcall/partitioner/ir/stablehlo/write/module_writer.h"
#include "shardcall/partitioner/ir/stablehlo/writer.h"
#include "shardcall/partitioner/ir/text/parser.h"
#include "shardcall/partitioner/ir/text/printer.h"
#include "shardcall/partitioner/ir/verifier/verifier.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
namespace {

using ::testing::HasSubstr;

const std::string kFolder = SHARDCALL_STABLEHLO_DATA;

std::string ReadFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

absl::StatusOr<Module> Parsed(const std::string& text) {
  return ParseModule(std::make_shared<const std::string>(text), std::make_shared<Context>(),
                     "written.hlo");
}

// The module written, read and printed.
std::string Again(const Module& module) {
  const absl::StatusOr<std::string> bytes = WriteStablehloBytecode(module);
  if (!bytes.ok()) return std::string(bytes.status().message());
  const absl::StatusOr<Module> read = ReadStablehloBytecode(*bytes, std::make_shared<Context>());
  if (!read.ok()) return std::string(read.status().message());
  const absl::Status verified = VerifyModule(*read, "again");
  return verified.ok() ? PrintModule(*read) : std::string(verified.message());
}

// The lines of a program in order of their text: without names, which are given anew, and without
// the elements of tuples, which are named where they are used.
std::string Contents(const std::string& text) {
  static const std::regex names("%[^ ,(){}]+|[^ (]+: (?=[a-z0-9]+\\[)");
  std::vector<std::string> lines;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    if (absl::StrContains(line, " get-tuple-element(")) continue;
    lines.push_back(std::regex_replace(std::string(line), names, ""));
  }
  std::sort(lines.begin(), lines.end());
  return absl::StrJoin(lines, "\n");
}

// Groups by the axes of a mesh as lists, as they are written.
void ListGroups(Module* module) {
  for (int k = 0; k < module->num_instructions(); ++k) {
    Instruction& i = module->mutable_instr(InstrId(k));
    if (i.attrs == nullptr || i.attrs->kind != AttrKind::kCollective) continue;
    CollectiveAttrs attrs = i.as<CollectiveAttrs>();
    if (attrs.groups.form != ReplicaGroups::Form::kMesh) continue;
    const auto lists = ListedGroups(attrs.groups, 0);
    ASSERT_TRUE(lists.has_value());
    std::vector<Ints> spans(lists->begin(), lists->end());
    attrs.groups = ReplicaGroups();
    attrs.groups.form = ReplicaGroups::Form::kLists;
    attrs.groups.lists = spans;
    i.attrs = InternAttributes(module->context(), attrs);
  }
}

// `text` is in the form of a program that was read from StableHLO.
void ExpectKept(const std::string& text) {
  absl::StatusOr<Module> module = Parsed(text);
  ASSERT_TRUE(module.ok()) << module.status();
  ListGroups(&*module);
  const std::string again = Again(*module);
  EXPECT_EQ(Contents(again), Contents(PrintModule(*module)));
  const absl::StatusOr<Module> second = Parsed(again);
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(Contents(Again(*second)), Contents(again));
}

std::string Refusal(const std::string& text) {
  const absl::StatusOr<Module> module = Parsed(text);
  if (!module.ok()) return std::string(module.status().message());
  const absl::Status status = WriteStablehloBytecode(*module).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(DiagnosticCode(status), "E149");
  return std::string(status.message());
}

class StablehloWriter : public testing::TestWithParam<std::string> {};

TEST_P(StablehloWriter, KeepsWhatWasReadFromStablehlo) {
  ExpectKept(ReadFile(absl::StrCat(kFolder, "/", GetParam(), ".hlo")));
}

std::vector<std::string> Programs() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder)) {
    if (entry.path().extension() == ".hlo") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}
INSTANTIATE_TEST_SUITE_P(Programs, StablehloWriter, testing::ValuesIn(Programs()),
                         [](const auto& info) { return info.param; });

// Of XLA's conversion, which the reader's other tests do not have.
TEST(StablehloWriterTest, KeepsShardingsDonationAndAttributesOfTheProgram) {
  const absl::StatusOr<Module> module = Parsed(
      R"(HloModule step, input_output_alias={ {1}: (0, {}, may-alias) }, buffer_donor={ (1, {}) }, num_partitions=2, frontend_attributes={xla.sdy.meshes="{mesh = #sdy.mesh<[\"x\"=2]>}"}

ENTRY %main (a: f32[4,8], b: f32[4,8]) -> (f32[4,8], f32[4,8]) {
  %a = f32[4,8] parameter(0), sharding={devices=[2,1]<=[2]}
  %b = f32[4,8] parameter(1), frontend_attributes={xla.sdy.sharding="#sdy.sharding<@mesh, [{\"x\"}, {}]>"}
  %add = f32[4,8] add(%a, %b), sharding={devices=[1,2]<=[2]}, metadata={op_name="jit(f)/add" source_file="f.py" source_line=3}
  ROOT %tuple = (f32[4,8], f32[4,8]) tuple(%add, %a), sharding={{replicated}, {devices=[2,1]<=[2]}}
})");
  ASSERT_TRUE(module.ok()) << module.status();
  const std::string text = Again(*module);
  for (const char* part :
       {"{1}: (0, {}, may-alias)", "buffer_donor={ (1, {}) }", "num_partitions=2", "xla.sdy.meshes",
        "sharding={devices=[2,1]<=[2]}", "xla.sdy.sharding=", "sharding={devices=[1,2]<=[2]}",
        "op_name=\"jit(f)/add\"", "sharding={{replicated}, {devices=[2,1]<=[2]}}", "f.py"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
}

TEST(StablehloWriterTest, KeepsLayoutsOfTheEntry) {
  const absl::StatusOr<Module> module = Parsed(
      "HloModule m, entry_computation_layout={(f32[4,6]{0,1}, s32[])->(s32[], f32[4,6]{0,1})}\n"
      "ENTRY e { a = f32[4,6] parameter(0)\nb = s32[] parameter(1)\n"
      "ROOT r = (s32[], f32[4,6]) tuple(b, a) }");
  ASSERT_TRUE(module.ok()) << module.status();
  EXPECT_THAT(Again(*module), HasSubstr("{(f32[4,6]{0,1}, s32[])->(s32[], f32[4,6]{0,1})}"));
}

TEST(StablehloWriterTest, SplitsTuplesOfCallsLoopsAndBranchesIntoValues) {
  const absl::StatusOr<Module> module = Parsed(R"(HloModule flat
%callee (p: f32[4], q: (f32[4], s32[])) -> (f32[4], (s32[], f32[4])) {
  %p = f32[4] parameter(0)
  %q = (f32[4], s32[]) parameter(1)
  %x = f32[4] get-tuple-element(%q), index=0
  %n = s32[] get-tuple-element(%q), index=1
  %inner = (s32[], f32[4]) tuple(%n, %p)
  ROOT %r = (f32[4], (s32[], f32[4])) tuple(%x, %inner)
}
%first (p: (f32[4])) -> f32[4] {
  %p = (f32[4]) parameter(0)
  ROOT %x = f32[4] get-tuple-element(%p), index=0
}
%second (p: f32[4]) -> f32[4] {
  %p = f32[4] parameter(0)
  ROOT %x = f32[4] negate(%p)
}
ENTRY %main (a: f32[4], n: s32[]) -> f32[4] {
  %a = f32[4] parameter(0)
  %n = s32[] parameter(1)
  %q = (f32[4], s32[]) tuple(%a, %n)
  %c = (f32[4], (s32[], f32[4])) call(%a, %q), to_apply=%callee
  %one = f32[4] get-tuple-element(%c), index=0
  %rest = (s32[], f32[4]) get-tuple-element(%c), index=1
  %two = f32[4] get-tuple-element(%rest), index=1
  %t = (f32[4]) tuple(%one)
  ROOT %b = f32[4] conditional(%n, %t, %two), branch_computations={%first, %second}
})");
  ASSERT_TRUE(module.ok()) << module.status();
  const std::string text = Again(*module);
  EXPECT_THAT(text, HasSubstr("call(%arg0, %arg0, %arg1)"));
  EXPECT_THAT(text, HasSubstr("(f32[4]{0}, s32[], f32[4]{0}) call("));
  EXPECT_THAT(text, HasSubstr("conditional(%arg1, "));
}

TEST(StablehloWriterTest, NamesWhatItDoesNotWrite) {
  const auto entry = [](const std::string& body) {
    return absl::StrCat("HloModule m\nENTRY e { a = f32[4,4] parameter(0)\n", body, " }");
  };
  EXPECT_THAT(Refusal(entry("ROOT r = f32[4,4] acosh(a)")), HasSubstr("an op acosh"));
  EXPECT_THAT(Refusal(entry("ROOT r = f32[4,4] copy(a), sharding={replicated}")),
              HasSubstr("a copy with a sharding"));
  EXPECT_THAT(Refusal(entry("ROOT r = f32[4,4] exponential(a), result_accuracy={mode=highest}")),
              HasSubstr("result_accuracy"));
  EXPECT_THAT(Refusal(entry("b = f32[4,4] negate(a)\nROOT r = f32[4,4] negate(b), "
                            "control-predecessors={a}")),
              HasSubstr("control edges"));
  EXPECT_THAT(Refusal("HloModule m, entry_computation_layout={(f32[4]{0:S(5)})->f32[4]{0}}\n"
                      "ENTRY e { a = f32[4] parameter(0)\nROOT r = f32[4] negate(a) }"),
              HasSubstr("a memory space"));
  EXPECT_THAT(Refusal("HloModule m, replica_count=2\nENTRY e { ROOT a = f32[4] parameter(0) }"),
              HasSubstr("replicas"));
  EXPECT_THAT(Refusal("HloModule m\nENTRY e { ROOT a = f32[<=4] parameter(0) }"),
              HasSubstr("a value f32[<=4]"));
}

TEST(StablehloWriterTest, EveryOpWithAStablehloNameIsPlainOrHasAWriter) {
  for (int k = 0; k < kNumOpcodes; ++k) {
    const Opcode opcode = static_cast<Opcode>(k);
    const OpcodeInfo& info = GetOpcodeInfo(opcode);
    if (info.stablehlo.empty()) continue;
    EXPECT_TRUE(stablehlo::IsPlain(info) || stablehlo::FindWriter(opcode) != nullptr) << info.text;
  }
}

TEST(StablehloWriterTest, CallsOfOtherTargetsAreTypedAndHaveLayoutsWhereAsked) {
  const absl::StatusOr<Module> module = Parsed(R"(HloModule m
ENTRY e {
  a = f32[4,4] parameter(0)
  ROOT r = f32[4,4] custom-call(a), custom_call_target="old", backend_config="opaque"
})");
  ASSERT_TRUE(module.ok()) << module.status();
  const InstrId call = module->comp(module->entry()).root;
  StablehloOptions options;
  options.typed_calls[call.value] = "new";
  options.all_call_layouts = true;
  const absl::StatusOr<std::string> bytes = WriteStablehloBytecode(*module, options);
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  const absl::StatusOr<Module> read = ReadStablehloBytecode(*bytes, std::make_shared<Context>());
  ASSERT_TRUE(read.ok()) << read.status();
  const std::string text = PrintModule(*read);
  EXPECT_THAT(text, HasSubstr("custom_call_target=\"new\""));
  EXPECT_THAT(text, HasSubstr("api_version=API_VERSION_TYPED_FFI"));
  EXPECT_THAT(text, HasSubstr("operand_layout_constraints={f32[4,4]{1,0}}"));
  EXPECT_EQ(text.find("opaque"), std::string::npos);
}

TEST(StablehloWriterTest, AConfigurationOfAnyBytesIsReadAsItWasWritten) {
  absl::StatusOr<Module> module = Parsed(R"(HloModule m
ENTRY e {
  a = f32[4] parameter(0)
  b = f32[4] custom-call(a), custom_call_target="t", api_version=API_VERSION_STATUS_RETURNING
  ROOT r = f32[4] custom-call(b), custom_call_target="t", api_version=API_VERSION_TYPED_FFI, backend_config={kernel = "\00\80\FF"}
})");
  ASSERT_TRUE(module.ok()) << module.status();
  std::string every;
  for (int b = 0; b < 256; ++b) every.push_back(static_cast<char>(b));
  const InstrId root = module->comp(module->entry()).root;
  const InstrId first = module->operand(root, 0);
  module->mutable_instr(first).backend_config = module->context().Intern(every);
  const std::string typed(module->instr(root).backend_config);
  const absl::StatusOr<std::string> bytes = WriteStablehloBytecode(*module, {});
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  const absl::StatusOr<Module> read = ReadStablehloBytecode(*bytes, std::make_shared<Context>());
  ASSERT_TRUE(read.ok()) << read.status();
  const InstrId again = read->comp(read->entry()).root;
  EXPECT_EQ(read->instr(again).backend_config, typed);
  EXPECT_EQ(read->instr(read->operand(again, 0)).backend_config, every);
}

TEST(StablehloWriterTest, AModuleThatWasMovedFromIsAnError) {
  absl::StatusOr<Module> module = Parsed("HloModule m\nENTRY e { ROOT a = f32[4] parameter(0) }");
  ASSERT_TRUE(module.ok()) << module.status();
  const Module taken = *std::move(module);
  EXPECT_EQ(DiagnosticCode(WriteStablehloBytecode(*module).status()), "E028");  // NOLINT
}

}  // namespace
}  // namespace shardcall
