// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/verifier/verifier.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/substitute.h"
#include "shardcall/partitioner/ir/build/builder.h"
#include "shardcall/partitioner/ir/shapes/shape_inference.h"
#include "shardcall/partitioner/ir/text/parser.h"
#include "tests/support/corpus.h"

namespace shardcall {
namespace {

absl::StatusOr<Module> Parse(const std::string& text, absl::string_view name) {
  return ParseModule(std::make_shared<const std::string>(text), std::make_shared<Context>(), name);
}

// The verifier's message; "ok" if it accepts, the parser's if that refuses.
std::string Verify(const std::string& text) {
  absl::StatusOr<Module> m = Parse(text, "x.hlo");
  if (!m.ok()) return absl::StrCat("parser: ", m.status().message());
  const absl::Status status = VerifyModule(*m, "x.hlo");
  return status.ok() ? "ok" : std::string(status.message());
}

// A module of 8 partitions whose entry has these instructions.
std::string Entry(absl::string_view body, absl::string_view computations = "") {
  return absl::StrCat("HloModule m, num_partitions=8\n\n", computations, "\nENTRY main {\n", body,
                      "\n}\n");
}

constexpr char kAdd[] = R"(
add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b) }
)";

TEST(VerifierTest, AcceptsNamedShardingsThatNameNoDimensions) {
  for (const char* word : {"manual", "replicated", "unreduced"}) {
    EXPECT_EQ(Verify(Entry(absl::StrCat("ROOT a = f32[8] parameter(0), sharding={mesh['a'=8], ",
                                        word, "}"))),
              "ok");
  }
}

constexpr char kLoop[] = R"(
c { a = (f32[8], s32[]) parameter(0)$0
  ROOT r = pred[] constant(true) }
b { a = (f32[8], s32[]) parameter(0)$1
  x = f32[8] get-tuple-element(a), index=0
  y = s32[] get-tuple-element(a), index=1
  ROOT r = (f32[8], s32[]) tuple(x, y)$2 }
)";
constexpr char kUseLoop[] =
    "x = (f32[8], s32[]) parameter(0)\n"
    "ROOT w = (f32[8], s32[]) while(x), condition=c, body=b";

TEST(VerifierTest, LoopsAgreeWithTheirComputationsOnShardings) {
  const std::string cut = ", sharding={{devices=[8]<=[8]}, {replicated}}";
  const std::string same = ", sharding={{mesh['a'=8], [{'a'}]}, {replicated}}";
  const std::string whole = ", sharding={replicated}";
  const auto loop = [](const std::string& own, const std::string& condition,
                       const std::string& body, const std::string& root) {
    return Verify(Entry(kUseLoop + own, absl::Substitute(kLoop, condition, body, root)));
  };
  EXPECT_EQ(loop(cut, same, cut, same), "ok");
  EXPECT_EQ(loop(whole, "", "", whole), "ok");
  EXPECT_EQ(loop(cut, same, cut, whole), "ok");  // what the body ends with is another value
  EXPECT_THAT(loop(cut, whole, "", ""),
              testing::HasSubstr("E025 while: the loop, its body's parameter and its condition's "
                                 "parameter differ in sharding at x.hlo:4:5, %a in %c: expected "
                                 "{{devices=[8]<=[8]}, {replicated}} as %w in %main, found "
                                 "{replicated}"));
  EXPECT_THAT(loop(cut, "", whole, ""), testing::HasSubstr("E025"));
  EXPECT_THAT(loop("", cut, whole, ""), testing::HasSubstr("E025"));
}

TEST(VerifierTest, BranchesMayEndInShardingsThatDiffer) {
  const auto choice = [](const std::string& own, const std::string& f, const std::string& g) {
    return Verify(Entry(absl::StrCat("x = f32[8] parameter(0)\np = pred[] constant(true)\n"
                                     "ROOT d = f32[8] conditional(p, x, x), true_computation=f, "
                                     "false_computation=g",
                                     own),
                        absl::StrCat("f { a = f32[8] parameter(0), sharding={manual}\n"
                                     "ROOT n = f32[8] negate(a)",
                                     f,
                                     " }\n"
                                     "g { a = f32[8] parameter(0)\nROOT n = f32[8] abs(a)",
                                     g, " }\n")));
  };
  const std::string cut = ", sharding={devices=[8]<=[8]}", whole = ", sharding={replicated}";
  EXPECT_EQ(choice(cut, cut, ""), "ok");
  EXPECT_EQ(choice(cut, "", whole), "ok");
  EXPECT_EQ(choice("", cut, whole), "ok");
}

TEST(VerifierTest, AcceptsEveryFileOfTheCorpus) {
  int files = 0;
  for (const std::filesystem::path& path : CorpusFiles()) {
    std::ifstream in(path);
    std::ostringstream text;
    text << in.rdbuf();
    const absl::StatusOr<Module> m = Parse(text.str(), path.filename().string());
    ASSERT_TRUE(m.ok()) << m.status();
    const absl::Status status = VerifyModule(*m, path.filename().string());
    EXPECT_TRUE(status.ok()) << status;
    ++files;
  }
  EXPECT_GE(files, 1);
}

// What is inferred from operands and attributes is what the corpus has written.
TEST(VerifierTest, InferenceGivesTheCorpusItsShapes) {
  int same = 0;
  for (const std::filesystem::path& path : CorpusFiles()) {
    std::ifstream in(path);
    std::ostringstream text;
    text << in.rdbuf();
    const absl::StatusOr<Module> m = Parse(text.str(), path.filename().string());
    ASSERT_TRUE(m.ok()) << m.status();
    for (int k = 0; k < m->num_instructions(); ++k) {
      const Instruction& i = m->instr(InstrId(k));
      std::vector<const Shape*> operands;
      bool descending = true;
      for (InstrId x : m->operands(i)) {
        operands.push_back(m->instr(x).shape);
        descending = descending &&
                     operands.back() == m->context().WithDefaultLayout(operands.back()->bare());
      }
      const absl::StatusOr<const Shape*> s =
          InferShape(m->context(), *m, i.opcode, operands, i.attrs);
      // A mixed-precision product has the type that the text says; a broadcast
      // without a written shape is its scalar operand's.
      if (!s.ok() || i.attrs->kind == AttrKind::kDot || i.opcode == Opcode::kBroadcast) continue;
      EXPECT_TRUE(CompatibleShapes(*s, i.shape)) << path << " " << i.name;
      // JAX writes descending layouts, but for transposes.
      if (descending && i.opcode != Opcode::kTranspose && !i.shape->IsTuple()) {
        EXPECT_EQ(*s, i.shape) << path << " " << i.name << " " << (*s)->ToString();
      }
      ++same;
    }
  }
  EXPECT_GE(same, 1000);
}

TEST(VerifierTest, ShowsThePlaceInTheText) {
  EXPECT_EQ(Verify(Entry("  p = f32[2] parameter(0)\n  ROOT n = f32[3] negate(p)")),
            "E023 negate: the written shape does not follow from the operands at x.hlo:6:8, %n in "
            "%main: expected f32[2], found f32[3]. Fix: write the expected shape\n"
            "  ROOT n = f32[3] negate(p)\n"
            "       ^");
}

TEST(VerifierTest, AModuleWithoutATextHasInstructionsOnly) {
  Module m(std::make_shared<Context>());
  m.set_entry(m.AddComputation("main"));
  MonoidTable monoids(&m);
  GraphBuilder b(&m, m.entry(), &monoids);
  const Shape* f32 = m.context().MakeScalar(ElementType::kF32);
  m.SetRoot(m.entry(), m.Add(m.entry(), Opcode::kNegate, m.context().MakeScalar(ElementType::kS32),
                             {b.Parameter(0, f32)}));
  EXPECT_EQ(VerifyModule(m, "").message(),
            "E023 negate: the written shape does not follow from the operands at negate #1 in "
            "%main: expected f32[], found s32[]. Fix: write the expected shape");
}

TEST(VerifierTest, AcceptsModulesThatLeaveTheDevicesOpen) {
  EXPECT_EQ(Verify(absl::StrCat("HloModule m\n", kAdd, R"(
ENTRY main {
  p = f32[2] parameter(0)
  g = f32[8] all-gather(p), channel_id=1, replica_groups={{0,1,2,3}}, dimensions={0}, use_global_device_ids=true
  ROOT r = f32[8] all-reduce(g), replica_groups={}, to_apply=add
})")),
            "ok");
}

TEST(VerifierTest, AcceptsMixedPrecisionProductsAndReducers) {
  EXPECT_EQ(Verify(Entry(R"(
  p = bf16[2,3] parameter(0)
  q = bf16[3,4] parameter(1)
  z = f32[] constant(0)
  d = f32[2,4] dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT r = f32[2] reduce(d, z), dimensions={1}, to_apply=add)",
                         kAdd)),
            "ok");
}

TEST(VerifierTest, AcceptsAsynchronousPairs) {
  EXPECT_EQ(Verify(Entry(R"(
  p = f32[2] parameter(0)
  s = (f32[2], f32[8]) all-gather-start(p), channel_id=1, replica_groups=[2,4]<=[8], dimensions={0}, use_global_device_ids=true
  d = f32[8] all-gather-done(s)
  c = (f32[2], f32[2], u32[], u32[]) collective-permute-start(p), channel_id=2, source_target_pairs={{0,1}}
  e = f32[2] collective-permute-done(c)
  ROOT t = (f32[8], f32[2]) tuple(d, e))")),
            "ok");
}

// Faults that text cannot express.
class VerifierStructureTest : public testing::Test {
 protected:
  VerifierStructureTest()
      : m_(std::make_shared<Context>()), monoids_(&m_), main_(m_.AddComputation("main")) {
    m_.set_entry(main_);
  }
  const Shape* Scalar() { return m_.context().MakeScalar(ElementType::kF32); }
  std::string Message() { return std::string(VerifyModule(m_, "").message()); }
  Module m_;
  MonoidTable monoids_;
  CompId main_;
};

TEST_F(VerifierStructureTest, OperandsStandBeforeTheirUsers) {
  GraphBuilder b(&m_, main_, &monoids_);
  const InstrId p = b.Parameter(0, Scalar());
  const InstrId n = b.Unary(Opcode::kNegate, p);
  b.SetRoot(n);
  EXPECT_TRUE(VerifyModule(m_, "").ok());
  std::swap(m_.mutable_comp(main_).instructions[0], m_.mutable_comp(main_).instructions[1]);
  EXPECT_EQ(Message(),
            "E028 operand 0 stands after its user at negate #1 in %main: expected operands before "
            "users, found parameter #0 in %main. Fix: list it before its user");
}

TEST_F(VerifierStructureTest, OperandsBelongToTheSameComputation) {
  const CompId other = m_.AddComputation("other");
  const InstrId q = GraphBuilder(&m_, other, &monoids_).Parameter(0, Scalar());
  m_.SetRoot(other, q);
  m_.SetRoot(main_, m_.Add(main_, Opcode::kNegate, Scalar(), {q}));
  EXPECT_EQ(Message(),
            "E028 operand 0 is not an instruction of the same computation at negate #1 in %main: "
            "expected an instruction of the same computation, found parameter #0 in %other. Fix: "
            "pass it in as a parameter");
}

TEST_F(VerifierStructureTest, EveryComputationHasARoot) {
  GraphBuilder(&m_, main_, &monoids_).Parameter(0, Scalar());
  EXPECT_EQ(Message(),
            "E028 the computation has no root of its own at %main: expected one of its "
            "instructions, found none. Fix: make one of its instructions the root");
}

TEST_F(VerifierStructureTest, ParametersAreDense) {
  GraphBuilder b(&m_, main_, &monoids_);
  b.SetRoot(b.Parameter(1, Scalar()));
  EXPECT_EQ(Message(),
            "E028 parameter 0 is missing at %main: expected numbers dense from 0, found none. "
            "Fix: number the parameters from 0");
}

TEST_F(VerifierStructureTest, ComputationsDoNotReachThemselves) {
  GraphBuilder b(&m_, main_, &monoids_);
  const InstrId p = b.Parameter(0, Scalar());
  CallAttrs call;
  call.to_apply = main_;
  b.SetRoot(m_.Add(main_, Opcode::kCall, Scalar(), {p}, InternAttributes(m_.context(), call)));
  EXPECT_EQ(Message(),
            "E027 computations call each other in a cycle at call #1 in %main: expected no "
            "computation that reaches itself, found %main. Fix: remove one of the calls");
}

TEST_F(VerifierStructureTest, CalledComputationsExist) {
  GraphBuilder b(&m_, main_, &monoids_);
  const InstrId p = b.Parameter(0, Scalar());
  CallAttrs call;
  call.to_apply = CompId(77);
  b.SetRoot(m_.Add(main_, Opcode::kCall, Scalar(), {p}, InternAttributes(m_.context(), call)));
  EXPECT_EQ(Message(),
            "E024 call: a called computation does not exist at call #1 in %main: expected one of "
            "1, found 77. Fix: call a computation of this signature");
}

TEST_F(VerifierStructureTest, ADeepChainOfCallsIsCheckedWithoutRecursion) {
  CompId callee = main_;
  GraphBuilder b(&m_, main_, &monoids_);
  b.SetRoot(b.Parameter(0, Scalar()));
  for (int i = 0; i < 100000; ++i) {
    const CompId c = m_.AddComputation("c");
    GraphBuilder caller(&m_, c, &monoids_);
    caller.SetRoot(caller.Call(callee, {caller.Parameter(0, Scalar())}));
    callee = c;
  }
  m_.set_entry(callee);
  EXPECT_TRUE(VerifyModule(m_, "").ok());
}

TEST_F(VerifierStructureTest, DeviceCountsArePositive) {
  GraphBuilder b(&m_, main_, &monoids_);
  b.SetRoot(b.Parameter(0, Scalar()));
  m_.header.num_partitions = 0;
  EXPECT_EQ(Message(),
            "E026 num_partitions and replica_count must be positive: expected 1 or more, found 0 "
            "and 1. Fix: correct the header");
}

TEST_F(VerifierStructureTest, ComputationsListTheirOwnInstructionsOnce) {
  GraphBuilder b(&m_, main_, &monoids_);
  const InstrId p = b.Parameter(0, Scalar());
  b.SetRoot(p);
  m_.mutable_comp(main_).instructions.push_back(p);
  EXPECT_EQ(Message(),
            "E028 a computation lists an instruction that is not its own at %main: expected each "
            "instruction once, in its computation, found entry 1. Fix: list it once, where it "
            "belongs");
}

TEST_F(VerifierStructureTest, ParameterNumbersAreNotTakenTwice) {
  ParameterAttrs a;
  const Attributes* attrs = InternAttributes(m_.context(), a);
  m_.Add(main_, Opcode::kParameter, Scalar(), {}, attrs);
  m_.SetRoot(main_, m_.Add(main_, Opcode::kParameter, Scalar(), {}, attrs));
  EXPECT_EQ(Message(),
            "E028 two parameters have the same number at %main: expected 1 parameters, found 2. "
            "Fix: number the parameters from 0");
}

TEST_F(VerifierStructureTest, ThereIsAnEntryAndEveryInstructionIsComplete) {
  Instruction none;
  none.opcode = Opcode::kAfterAll;
  m_.SetRoot(main_, m_.Add(main_, none, {}));
  EXPECT_EQ(Message(),
            "E028 the instruction has no shape or attributes at after-all #0 in %main. Fix: put "
            "the instructions in order");
  m_.set_entry(CompId());
  EXPECT_EQ(Message(),
            "E028 the module has no entry computation: expected an ENTRY computation, found none. "
            "Fix: mark one computation with ENTRY");
}

TEST_F(VerifierStructureTest, AttributesAreThoseOfTheOp) {
  GraphBuilder b(&m_, main_, &monoids_);
  const InstrId p = b.Parameter(0, Scalar());
  m_.SetRoot(main_, m_.Add(main_, Opcode::kReverse, Scalar(), {p}));
  EXPECT_EQ(Message(),
            "E022 reverse: the attributes are those of another op at reverse #1 in %main: expected "
            "its own attributes, found others. Fix: correct the attribute");
}

TEST_F(VerifierStructureTest, ShapesAreWhatTheySay) {
  const int64_t twice[] = {0, 0};
  m_.SetRoot(main_, m_.Add(main_, Opcode::kParameter,
                           m_.context().MakeArray(ElementType::kF32, {2, 3}, twice), {},
                           InternAttributes(m_.context(), ParameterAttrs{})));
  EXPECT_EQ(Message(),
            "E021 the layout is not a permutation of the dimensions at parameter #0 in %main: "
            "expected each of [0,2) once, found f32[2,3]{0,0}. Fix: give operands and a shape that "
            "fit the op");
  const std::vector<int64_t> ones(256, 1);
  m_.mutable_instr(m_.comp(main_).root).shape = m_.context().MakeArray(ElementType::kF32, ones);
  EXPECT_EQ(Message(),
            "E021 parameter: an array has too many dimensions at parameter #0 in %main: expected "
            "at most 255, found 256. Fix: give operands and a shape that fit the op");
}

TEST_F(VerifierStructureTest, ConstantsHaveAValueAndPairsTwoEnds) {
  m_.SetRoot(main_, m_.Add(main_, Opcode::kConstant, Scalar(), {},
                           InternAttributes(m_.context(), ConstantAttrs{})));
  EXPECT_EQ(Message(),
            "E022 constant: the constant has no value at constant #0 in %main: expected a literal, "
            "found none. Fix: correct the attribute");
  PermuteAttrs permute;
  const int64_t two[] = {0, 1};
  permute.sources = two;
  const InstrId p = GraphBuilder(&m_, main_, &monoids_).Parameter(0, Scalar());
  Instruction& root = m_.mutable_instr(m_.comp(main_).root);
  root.opcode = Opcode::kAfterAll;
  root.attrs = NoAttributes();
  root.shape = m_.context().MakeToken();
  m_.SetRoot(main_, m_.Add(main_, Opcode::kCollectivePermute, Scalar(), {p},
                           InternAttributes(m_.context(), permute)));
  EXPECT_EQ(Message(),
            "E025 source_target_pairs are not pairs at collective-permute #2 in %main: expected 2, "
            "found 0. Fix: correct the devices, or the counts in the header");
}

}  // namespace
}  // namespace shardcall
