// SPDX-License-Identifier: Apache-2.0
#include "partitioner/ir/verifier.h"

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
#include "partitioner/ir/builder.h"
#include "partitioner/ir/parser.h"
#include "partitioner/ir/shape_inference.h"

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

TEST(VerifierTest, AcceptsEveryFileOfTheCorpus) {
  const char* dir = std::getenv("SHARDCALL_CORPUS");
  if (dir == nullptr) GTEST_SKIP() << "SHARDCALL_CORPUS is not set";
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(dir)) {
    if (entry.path().extension() != ".hlo") continue;
    std::ifstream in(entry.path());
    std::ostringstream text;
    text << in.rdbuf();
    const absl::StatusOr<Module> m = Parse(text.str(), entry.path().filename().string());
    ASSERT_TRUE(m.ok()) << m.status();
    const absl::Status status = VerifyModule(*m, entry.path().filename().string());
    EXPECT_TRUE(status.ok()) << status;
    ++files;
  }
  EXPECT_GE(files, 1);
}

// What is inferred from operands and attributes is what the corpus has written.
TEST(VerifierTest, InferenceGivesTheCorpusItsShapes) {
  const char* dir = std::getenv("SHARDCALL_CORPUS");
  if (dir == nullptr) GTEST_SKIP() << "SHARDCALL_CORPUS is not set";
  int same = 0;
  for (const auto& entry : std::filesystem::directory_iterator(dir)) {
    if (entry.path().extension() != ".hlo") continue;
    std::ifstream in(entry.path());
    std::ostringstream text;
    text << in.rdbuf();
    const absl::StatusOr<Module> m = Parse(text.str(), entry.path().filename().string());
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
      EXPECT_TRUE(CompatibleShapes(*s, i.shape)) << entry.path() << " " << i.name;
      // JAX writes descending layouts, but for transposes.
      if (descending && i.opcode != Opcode::kTranspose && !i.shape->IsTuple()) {
        EXPECT_EQ(*s, i.shape) << entry.path() << " " << i.name << " " << (*s)->ToString();
      }
      ++same;
    }
  }
  EXPECT_GE(same, 1000);
}

struct Broken {
  const char* what;
  std::string text;
  const char* message;
};

class VerifierRejectsTest : public testing::TestWithParam<Broken> {};

TEST_P(VerifierRejectsTest, WithCodeAndPlace) { EXPECT_EQ(Verify(GetParam().text), GetParam().message); }

std::vector<Broken> BrokenModules() {
  return {
      {"WrongElementwiseResult", Entry("  p = f32[2] parameter(0)\n  ROOT n = f32[3] negate(p)"),
       "E023 negate: the written shape does not follow from the operands at x.hlo, %n in %main: "
       "expected f32[2], found f32[3]. Fix: write the expected shape"},
      {"WrongElementwiseType", Entry("  p = f32[2] parameter(0)\n  ROOT n = s32[2] negate(p)"),
       "E023 negate: the written shape does not follow from the operands at x.hlo, %n in %main: "
       "expected f32[2], found s32[2]. Fix: write the expected shape"},
      {"OperandsDiffer",
       Entry("  p = f32[2] parameter(0)\n  q = f32[3] parameter(1)\n  ROOT n = f32[2] add(p, q)"),
       "E021 add: operands 0 and 1 have different dimensions at x.hlo, %n in %main: expected "
       "f32[2], found f32[3]. Fix: insert a broadcast"},
      {"BroadcastDimension",
       Entry("  p = f32[2] parameter(0)\n  ROOT b = f32[3,4] broadcast(p), dimensions={0}"),
       "E021 broadcast: operand dimension 0 and result dimension 0 have different sizes at x.hlo, "
       "%b in %main: expected 2, found 3"},
      {"TransposeTwice",
       Entry("  p = f32[2,2] parameter(0)\n  ROOT t = f32[2,2] transpose(p), dimensions={1,1}"),
       "E022 transpose: dimensions names a dimension twice at x.hlo, %t in %main: expected each at "
       "most once, found {1,1}"},
      {"SliceBounds",
       Entry("  p = f32[4] parameter(0)\n  ROOT s = f32[5] slice(p), slice={[0:5]}"),
       "E022 slice: slice is out of range in dimension 0 at x.hlo, %s in %main: expected 0 <= "
       "start <= limit <= 4 and stride >= 1, found [0:5:1]"},
      {"DotContracting",
       Entry("  p = f32[2,3] parameter(0)\n  q = f32[4,5] parameter(1)\n  ROOT d = f32[2,5] dot(p, "
             "q), lhs_contracting_dims={1}, rhs_contracting_dims={0}"),
       "E021 dot: lhs dimension 1 and rhs dimension 0 are paired by contracting_dims but differ in "
       "size at x.hlo, %d in %main: expected 3, found 4"},
      {"ReduceDimension",
       Entry("  p = f32[2,3] parameter(0)\n  z = f32[] constant(0)\n  ROOT r = f32[2] reduce(p, "
             "z), dimensions={2}, to_apply=add", kAdd),
       "E022 reduce: dimensions is out of range at x.hlo, %r in %main: expected a dimension in "
       "[0,2), found 2"},
      {"ReducerOfAnotherType",
       Entry("  p = s32[2,3] parameter(0)\n  z = s32[] constant(0)\n  ROOT r = s32[2] reduce(p, "
             "z), dimensions={1}, to_apply=add", kAdd),
       "E024 reduce: parameter 0 of to_apply=add is wrong at x.hlo, %r in %main: expected s32[], "
       "found f32[]"},
      {"WhileCondition",
       Entry("  p = f32[] parameter(0)\n  ROOT w = f32[] while(p), condition=body, body=body",
             "body { ROOT x = f32[] parameter(0) }\n"),
       "E024 while: the result of condition=body is wrong at x.hlo, %w in %main: expected pred[], "
       "found f32[]"},
      {"CallArguments",
       Entry("  p = f32[2] parameter(0)\n  ROOT c = f32[] call(p, p), to_apply=add", kAdd),
       "E024 call: parameter 0 of to_apply=add does not match what is passed to it at x.hlo, %c in "
       "%main: expected f32[2], found f32[]"},
      {"TupleIndex",
       Entry("  p = (f32[2], s32[]) parameter(0)\n  ROOT g = f32[2] get-tuple-element(p), index=1"),
       "E023 get-tuple-element: the written shape does not follow from the operands at x.hlo, %g "
       "in %main: expected s32[], found f32[2]. Fix: write the expected shape"},
      {"GatherSizes",
       Entry("  p = f32[9,4] parameter(0)\n  i = s32[7,1] parameter(1)\n  ROOT g = f32[7,4] "
             "gather(p, i), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, "
             "index_vector_dim=1, slice_sizes={2,4}"),
       "E022 gather: slice_sizes is out of range in dimension 0 at x.hlo, %g in %main: expected a "
       "size in [0,1], found 2"},
      {"GroupDevice",
       Entry("  p = f32[2] parameter(0)\n  ROOT r = f32[2] all-reduce(p), channel_id=1, "
             "replica_groups={{0,1},{2,8}}, use_global_device_ids=true, to_apply=add", kAdd),
       "E025 replica_groups has a device that does not exist at x.hlo, %r in %main: expected "
       "[0,8), found 8. Fix: correct it or num_partitions"},
      {"GroupTwice",
       Entry("  p = f32[2] parameter(0)\n  ROOT r = f32[2] all-reduce(p), channel_id=1, "
             "replica_groups={{0,1},{1,2}}, use_global_device_ids=true, to_apply=add", kAdd),
       "E025 replica_groups names a device twice at x.hlo, %r in %main: expected each at most "
       "once, found 1"},
      {"GroupSizes",
       Entry("  p = f32[2] parameter(0)\n  ROOT r = f32[2] all-reduce(p), channel_id=1, "
             "replica_groups={{0,1},{2}}, use_global_device_ids=true, to_apply=add", kAdd),
       "E025 replica_groups has groups of different sizes, or empty ones at x.hlo, %r in %main: "
       "expected 2 devices each, found 1"},
      {"IotaGroups",
       Entry("  p = f32[2] parameter(0)\n  ROOT r = f32[2] all-reduce(p), channel_id=1, "
             "replica_groups=[4,4]<=[16], use_global_device_ids=true, to_apply=add", kAdd),
       "E025 replica_groups has a device that does not exist at x.hlo, %r in %main: expected "
       "[0,8), found [4,4]<=[16]. Fix: correct it or num_partitions"},
      {"AllGatherSize",
       Entry("  p = f32[2] parameter(0)\n  ROOT g = f32[4] all-gather(p), channel_id=1, "
             "replica_groups=[2,4]<=[8], dimensions={0}, use_global_device_ids=true"),
       "E023 all-gather: the written shape does not follow from the operands at x.hlo, %g in "
       "%main: expected f32[8], found f32[4]. Fix: write the expected shape"},
      {"PermuteTargetTwice",
       Entry("  p = f32[2] parameter(0)\n  ROOT c = f32[2] collective-permute(p), channel_id=1, "
             "source_target_pairs={{0,1},{2,1}}"),
       "E025 a target of source_target_pairs names a device twice at x.hlo, %c in %main: expected "
       "each at most once, found 1"},
      {"ShardingDevice",
       Entry("  ROOT p = f32[2] parameter(0), sharding={maximal device=8}"),
       "E025 the sharding's device does not exist at x.hlo, %p in %main: expected [0,8), found 8"},
      {"EntryLayout",
       "HloModule m, entry_computation_layout={(f32[3]{0})->f32[2]{0}}\n\nENTRY main {\n  ROOT p = "
       "f32[2] parameter(0)\n}\n",
       "E026 entry_computation_layout has the wrong shape for parameter 0 at x.hlo: expected "
       "f32[2], found f32[3]. Fix: correct entry_computation_layout or leave it out"},
      {"AliasParameter",
       "HloModule m, input_output_alias={ {}: (1, {}, may-alias) }\n\nENTRY main {\n  ROOT p = "
       "f32[2] parameter(0)\n}\n",
       "E026 input_output_alias names a parameter that does not exist at x.hlo: expected [0,1), "
       "found 1"},
      {"DonorIndex",
       "HloModule m, buffer_donor={ (0, {1}) }\n\nENTRY main {\n  ROOT p = f32[2] "
       "parameter(0)\n}\n",
       "E026 buffer_donor names a part of parameter 0 that does not exist at x.hlo: expected an "
       "index into f32[2], found {1}"},
      {"HugeArray",
       Entry("  ROOT p = f32[4611686018427387904,4611686018427387904] parameter(0)"),
       "E021 the array is too large at x.hlo, %p in %main: expected fewer than 2^63 bytes, found "
       "f32[4611686018427387904,4611686018427387904]"},
  };
}

INSTANTIATE_TEST_SUITE_P(Broken, VerifierRejectsTest, testing::ValuesIn(BrokenModules()),
                         [](const auto& info) { return std::string(info.param.what); });

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
  ROOT r = f32[2] reduce(d, z), dimensions={1}, to_apply=add)", kAdd)),
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
            "users, found parameter #0 in %main");
}

TEST_F(VerifierStructureTest, OperandsBelongToTheSameComputation) {
  const CompId other = m_.AddComputation("other");
  const InstrId q = GraphBuilder(&m_, other, &monoids_).Parameter(0, Scalar());
  m_.SetRoot(other, q);
  m_.SetRoot(main_, m_.Add(main_, Opcode::kNegate, Scalar(), {q}));
  EXPECT_EQ(Message(),
            "E028 operand 0 is not an instruction of the same computation at negate #1 in %main: "
            "expected an instruction of the same computation, found parameter #0 in %other");
}

TEST_F(VerifierStructureTest, EveryComputationHasARoot) {
  GraphBuilder(&m_, main_, &monoids_).Parameter(0, Scalar());
  EXPECT_EQ(Message(),
            "E028 the computation has no root of its own at %main: expected one of its "
            "instructions, found none");
}

TEST_F(VerifierStructureTest, ParametersAreDense) {
  GraphBuilder b(&m_, main_, &monoids_);
  b.SetRoot(b.Parameter(1, Scalar()));
  EXPECT_EQ(Message(),
            "E028 parameter 0 is missing at %main: expected numbers dense from 0, found none");
}

TEST_F(VerifierStructureTest, ComputationsDoNotReachThemselves) {
  GraphBuilder b(&m_, main_, &monoids_);
  const InstrId p = b.Parameter(0, Scalar());
  CallAttrs call;
  call.to_apply = main_;
  b.SetRoot(b.AddWithShape(Opcode::kCall, Scalar(), {p}, InternAttributes(m_.context(), call)));
  EXPECT_EQ(Message(),
            "E027 computations call each other in a cycle at call #1 in %main: expected no "
            "computation that reaches itself, found %main");
}

TEST_F(VerifierStructureTest, CalledComputationsExist) {
  GraphBuilder b(&m_, main_, &monoids_);
  const InstrId p = b.Parameter(0, Scalar());
  CallAttrs call;
  call.to_apply = CompId(77);
  b.SetRoot(b.AddWithShape(Opcode::kCall, Scalar(), {p}, InternAttributes(m_.context(), call)));
  EXPECT_EQ(Message(),
            "E024 call: a called computation does not exist at call #1 in %main: expected one of "
            "1, found 77");
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
            "and 1");
}

}  // namespace
}  // namespace shardcall
