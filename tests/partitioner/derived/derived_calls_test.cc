// SPDX-License-Identifier: Apache-2.0
// VJPs and batched forms of calls, and the proof of a VJP.
#include "shardcall/partitioner/api/derived_calls.h"

#include <algorithm>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "shardcall/kernels/builtin.h"
#include "shardcall/partitioner/api/executable.h"
#include "shardcall/partitioner/api/verify.h"
#include "shardcall/partitioner/check/check_vjp.h"
#include "shardcall/partitioner/check/reference.h"
#include "shardcall/partitioner/ir/build/program_builder.h"
#include "shardcall/partitioner/ir/text/parser.h"
#include "shardcall/partitioner/ir/text/printer.h"
#include "shardcall/partitioner/runtime/io/random_inputs.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
namespace {

using ::testing::HasSubstr;

constexpr char kProduct[] = R"(HloModule mv
ENTRY main { x = f32[5,6] parameter(0) w = f32[6] parameter(1)
  ROOT y = f32[5] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0} })";
// dx = dy w, dw = x^T dy; in other sizes than any call here has.
constexpr char kProductVjp[] = R"(HloModule mv_vjp
ENTRY main { dy = f32[7] parameter(0) x = f32[7,3] parameter(1) w = f32[3] parameter(2)
  a = f32[7,3] broadcast(dy), dimensions={0}
  b = f32[7,3] broadcast(w), dimensions={1}
  dx = f32[7,3] multiply(a, b)
  dw = f32[3] dot(dy, x), lhs_contracting_dims={0}, rhs_contracting_dims={0}
  ROOT t = (f32[7,3], f32[3]) tuple(dx, dw) })";
constexpr char kBatchedProduct[] = R"(HloModule bmv
ENTRY main { x = f32[4,5,6] parameter(0) w = f32[4,6] parameter(1)
  ROOT y = f32[4,5] dot(x, w), lhs_batch_dims={0}, rhs_batch_dims={0},
    lhs_contracting_dims={2}, rhs_contracting_dims={1} })";

struct Registries {
  TargetRegistry targets;
  HandlerRegistry handlers;
  void Add(const std::string& target, const std::string& hlo) {
    ASSERT_TRUE(RegisterPartitionLike(target, hlo, &targets).ok());
    ASSERT_TRUE(handlers.Register(*ReferenceHandler(target, hlo, nullptr, nullptr)).ok());
  }
};
VjpSpec ProductVjp(std::string computation) {
  return {
      .computation = std::move(computation),
      .arguments = {VjpArgument::Cotangent(0), VjpArgument::Operand(0), VjpArgument::Operand(1)},
      .gradients = {0, 1}};
}

absl::StatusOr<RuleCheck> Check(const Registries& r, const std::string& target) {
  SHARDCALL_ASSIGN_OR_RETURN(const std::vector<CheckedCall> calls,
                             CallsOfTarget(target, r.targets, r.handlers));
  return CheckVjp(calls, 0, {.targets = &r.targets, .handlers = &r.handlers});
}

TEST(CheckVjp, HoldsForTheShippedOnes) {
  Registries r;
  ASSERT_TRUE(RegisterBuiltinTargets(r.targets).ok());
  ASSERT_TRUE(RegisterBuiltinHandlers(r.handlers).ok());
  for (const char* target : {"rms_norm", "flash_attention_fwd", "softmax_cross_entropy",
                             "custom_relu", "gemm", "sparse_matmul"}) {
    const auto check = Check(r, target);
    ASSERT_TRUE(check.ok()) << check.status();
    EXPECT_EQ(check->verdict, RuleVerdict::kHolds) << RuleCheckJson(*check);
    EXPECT_GT(check->trials, 10);
    // Gradients that are sums want even sizes where no pad is known.
    for (const std::string& what : check->untested) EXPECT_THAT(what, HasSubstr("uneven sizes"));
  }
  EXPECT_EQ(DiagnosticCode(Check(r, "topk").status()), "E118");
}

absl::StatusOr<RuleCheck> CheckProgram(const Registries& r, const std::string& target,
                                       const std::string& hlo) {
  SHARDCALL_ASSIGN_OR_RETURN(
      const Module module,
      ParseModule(std::make_shared<const std::string>(hlo), std::make_shared<Context>(), "m"));
  SHARDCALL_ASSIGN_OR_RETURN(const std::vector<CheckedCall> calls,
                             CallsOfModule(target, r.targets, module));
  return CheckVjp(calls, 0, {.targets = &r.targets, .handlers = &r.handlers});
}

TEST(CheckVjp, HoldsForEveryFormOfAMatrixProduct) {
  Registries r;
  ASSERT_TRUE(RegisterBuiltinTargets(r.targets).ok());
  ASSERT_TRUE(RegisterBuiltinHandlers(r.handlers).ok());
  std::string calls;
  const std::string scaled = "alpha = 2.0 : f32, beta = -3.0 : f32";
  for (const auto& [operands, config] : std::vector<std::pair<std::string, std::string>>{
           {"a, b", scaled},
           {"at, b", scaled + ", transa = \"T\""},
           {"at, bt", scaled + ", transb = \"C\", transa = \"C\""},
           {"a, bt", "alpha = 0.5 : f32, beta = 0.0 : f32, transb = true"}}) {
    calls += "  d" + std::to_string(calls.size()) + " = f64[2,3,5] custom-call(" + operands +
             ", c), custom_call_target=\"cublas_gemm\", api_version=API_VERSION_TYPED_FFI, "
             "backend_config={" +
             config + "}\n";
  }
  const auto check = CheckProgram(r, "cublas_gemm", R"(HloModule m
ENTRY e {
  a = f64[2,3,4] parameter(0)
  at = f64[2,4,3] parameter(1)
  b = f64[2,4,5] parameter(2)
  bt = f64[2,5,4] parameter(3)
  c = f64[2,3,5] parameter(4)
)" + calls + "  ROOT t = tuple(a)\n}\n");
  ASSERT_TRUE(check.ok()) << check.status();
  EXPECT_EQ(check->verdict, RuleVerdict::kHolds) << RuleCheckJson(*check);
  EXPECT_TRUE(check->untested.empty()) << check->untested[0];
}

// In a manual region every device has a result of its own: what its operand's gradient
// is follows from all of their cotangents.
TEST(Vjp, OfAnAllReduceSumsTheCotangentsOfItsGroup) {
  Registries r;
  ASSERT_TRUE(RegisterBuiltinTargets(r.targets).ok());
  ASSERT_TRUE(RegisterBuiltinHandlers(r.handlers).ok());
  const auto check = Check(r, "nccl_allreduce");  // on one device
  ASSERT_TRUE(check.ok()) << check.status();
  EXPECT_EQ(check->verdict, RuleVerdict::kHolds) << RuleCheckJson(*check);

  const auto program = [&](const std::string& config) -> absl::StatusOr<Module> {
    const std::string hlo = R"(HloModule m, num_partitions=4
ENTRY main {
  p = f32[8,3] parameter(0), sharding={devices=[4,1]<=[4]}
  q = f32[8,3] parameter(1), sharding={devices=[4,1]<=[4]}
  x = f32[2,3] custom-call(p), custom_call_target="SPMDFullToShardShape", sharding={manual}
  c = f32[2,3] custom-call(q), custom_call_target="SPMDFullToShardShape", sharding={manual}
  ROOT y = f32[2,3] custom-call(x), custom_call_target="nccl_allreduce", api_version=API_VERSION_TYPED_FFI, backend_config={)" +
                            config + "}, sharding={manual}\n}\n";
    SHARDCALL_ASSIGN_OR_RETURN(Module module, ParseModule(std::make_shared<const std::string>(hlo),
                                                          std::make_shared<Context>(), "m"));
    const CompId entry = module.entry();
    const InstrId y = module.comp(entry).root;
    const InstrId cotangent = module.comp(entry).instructions[3];
    MonoidTable monoids(&module);
    CheckedBuilder b(&module, entry, &monoids);
    SHARDCALL_ASSIGN_OR_RETURN(const std::vector<InstrId> dx, Vjp(b, r.targets, y, {cotangent}));
    SHARDCALL_RETURN_IF_ERROR(b.SetSharding(dx[0], "{manual}"));
    CustomCallAttrs whole;
    whole.target = "SPMDShardToFullShape";
    SHARDCALL_ASSIGN_OR_RETURN(
        const InstrId root,
        b.CustomCall(whole, {dx[0]}, b.shape(module.comp(entry).parameters[0])));
    SHARDCALL_RETURN_IF_ERROR(b.SetSharding(root, "{devices=[4,1]<=[4]}"));
    SHARDCALL_RETURN_IF_ERROR(b.SetRoot(root));
    return module;
  };
  // Devices 0 and 2, 1 and 3.
  auto module = program(
      "replica_groups = dense<[[0, 2], [1, 3]]> : tensor<2x2xi64>, "
      "group_size = 2 : i64");
  ASSERT_TRUE(module.ok()) << module.status();
  RunOptions options;
  options.partition.targets = &r.targets;
  options.handlers = &r.handlers;
  const auto compiled = Compile(*std::move(module), options);
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  std::vector<float> p(24), q(24);
  for (int k = 0; k < 24; ++k) q[k] = static_cast<float>(k * k % 17);
  const auto out = compiled->Execute(
      {Tensor::From(ElementType::kF32, {8, 3}, p), Tensor::From(ElementType::kF32, {8, 3}, q)});
  ASSERT_TRUE(out.ok()) << out.status();
  for (int k = 0; k < 24; ++k) {
    EXPECT_EQ((*out)[0].data<float>()[k], q[k % 12] + q[k % 12 + 12]) << k;
  }
  EXPECT_EQ(DiagnosticCode(program("op = \"max\"").status()), "E118");
  EXPECT_THAT(std::string(program("op = \"max\"").status().message()), HasSubstr("op = \"max\""));
  EXPECT_TRUE(program("op = \"sum\"").ok());
}

TEST(CheckVjp, HoldsForAComputation) {
  Registries r;
  r.Add("mv", kProduct);
  ASSERT_TRUE(r.targets.RegisterVjp("mv", ProductVjp(kProductVjp)).ok());
  const auto check = Check(r, "mv");
  ASSERT_TRUE(check.ok()) << check.status();
  EXPECT_EQ(check->verdict, RuleVerdict::kHolds) << RuleCheckJson(*check);
}

std::string Replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos);
  return text.replace(at, from.size(), to);
}

TEST(CheckVjp, FindsSeededFaults) {
  struct Fault {
    const char *from, *to, *operand;
  };
  for (const Fault& f :
       {Fault{"dx = f32[7,3] multiply(a, b)", "dx = f32[7,3] add(a, b)", "operand 0"},
        Fault{"dx = f32[7,3] multiply(a, b)", "n = f32[7,3] negate(a) dx = f32[7,3] multiply(n, b)",
              "operand 0"},
        Fault{"b = f32[7,3] broadcast(w), dimensions={1}",
              "r = f32[3] reverse(w), dimensions={0} b = f32[7,3] broadcast(r), dimensions={1}",
              "operand 0"},
        Fault{"dw = f32[3] dot(dy, x), lhs_contracting_dims={0}, rhs_contracting_dims={0}",
              "dd = f32[7] add(dy, dy) dw = f32[3] dot(dd, x), lhs_contracting_dims={0}, "
              "rhs_contracting_dims={0}",
              "operand 1"},
        Fault{"dw = f32[3] dot(dy, x), lhs_contracting_dims={0}, rhs_contracting_dims={0}",
              "d = f32[3] dot(dy, x), lhs_contracting_dims={0}, rhs_contracting_dims={0} "
              "dw = f32[3] subtract(d, d)",
              "operand 1"}}) {
    Registries r;
    r.Add("mv", kProduct);
    ASSERT_TRUE(r.targets.RegisterVjp("mv", ProductVjp(Replaced(kProductVjp, f.from, f.to))).ok());
    const auto check = Check(r, "mv");
    ASSERT_TRUE(check.ok()) << check.status();
    ASSERT_EQ(check->verdict, RuleVerdict::kIncorrect) << f.to;
    EXPECT_EQ(check->findings[0].factor, f.operand) << RuleCheckJson(*check);
    EXPECT_THAT(check->findings[0].message, HasSubstr("finite differences"));
  }
}

TEST(CheckVjp, ChecksTheTransposedRuleWithTheVjpsHandler) {
  Registries r;
  r.Add("mv", kProduct);
  VjpSpec vjp = ProductVjp("");
  vjp.target = "mv_bwd";
  ASSERT_TRUE(r.targets.RegisterVjp("mv", vjp).ok());
  ASSERT_TRUE(r.handlers.Register(*ReferenceHandler("mv_bwd", kProductVjp, nullptr, nullptr)).ok());
  auto check = Check(r, "mv");
  ASSERT_TRUE(check.ok()) << check.status();
  EXPECT_EQ(check->verdict, RuleVerdict::kHolds) << RuleCheckJson(*check);
  EXPECT_GT(check->trials, 20);  // those of the rule among them
}

// One device: what the program gives.
std::vector<Tensor> RunOne(Module module, const HandlerRegistry& handlers,
                           const std::vector<Tensor>& inputs) {
  const auto program = Compile(std::move(module), {.handlers = &handlers});
  EXPECT_TRUE(program.ok()) << program.status();
  if (!program.ok()) return {};
  const auto out = program->Execute(inputs);
  EXPECT_TRUE(out.ok()) << out.status();
  return out.ok() ? *out : std::vector<Tensor>();
}

TEST(Vjp, SaysWhyThereIsNone) {
  Registries r;
  r.Add("mv", kProduct);
  ProgramBuilder p("m");
  const InstrId x = *p.Parameter(ElementType::kF32, {5, 6}),
                w = *p.Parameter(ElementType::kF32, {6});
  CustomCallAttrs attrs;
  attrs.target = "mv";
  const InstrId y = *p.builder().CustomCall(attrs, {x, w}, r.targets);
  auto code = [&](InstrId call, std::vector<InstrId> cotangents) {
    return std::string(DiagnosticCode(Vjp(p.builder(), r.targets, call, cotangents).status()));
  };
  EXPECT_EQ(code(y, {y}), "E118");  // none is registered
  ASSERT_TRUE(r.targets.RegisterVjp("mv", ProductVjp(kProductVjp)).ok());
  EXPECT_EQ(code(x, {y}), "E123");
  EXPECT_EQ(code(InstrId(), {y}), "E123");
  EXPECT_EQ(code(y, {}), "E123");
  EXPECT_EQ(code(y, {x}), "E123");  // a cotangent of another shape
  EXPECT_EQ(code(y, {y}), "");
  EXPECT_EQ(code(y, {InstrId()}), "");  // zeros
}

TEST(Vjp, SaysOfWrongCotangentsThatTheyAreWrong) {
  Registries r;
  r.Add("mv", kProduct);
  ASSERT_TRUE(r.targets.RegisterVjp("mv", ProductVjp(kProductVjp)).ok());
  ProgramBuilder p("m");
  const InstrId x = *p.Parameter(ElementType::kF32, {5, 6}),
                w = *p.Parameter(ElementType::kF32, {6});
  CustomCallAttrs attrs;
  attrs.target = "mv";
  const InstrId y = *p.builder().CustomCall(attrs, {x, w}, r.targets);
  auto message = [&](std::vector<InstrId> cotangents) {
    return std::string(Vjp(p.builder(), r.targets, y, cotangents).status().message());
  };
  EXPECT_THAT(message({y, y}), HasSubstr("E123 the VJP of \"mv\" is given 2 cotangents: "
                                         "expected 1, one for each result, found 2"));
  EXPECT_THAT(message({w}), HasSubstr("E123 the VJP of \"mv\" is given another cotangent 0: "
                                      "expected f32[5], found f32[6]"));
  EXPECT_THAT(message({InstrId(99)}), HasSubstr("E123"));
}

TEST(Vjp, TwiceInAModuleHasComputationsOfTheirOwnNames) {
  Registries r;
  r.Add("mv", kProduct);
  ASSERT_TRUE(r.targets.RegisterVjp("mv", ProductVjp(kProductVjp)).ok());
  ProgramBuilder p("m");
  const InstrId x = *p.Parameter(ElementType::kF32, {5, 6}),
                w = *p.Parameter(ElementType::kF32, {6});
  CustomCallAttrs attrs;
  attrs.target = "mv";
  std::vector<InstrId> sums;
  for (int k = 0; k < 3; ++k) {
    const InstrId y = *p.builder().CustomCall(attrs, {x, w}, r.targets);
    const auto gradients = Vjp(p.builder(), r.targets, y, {y});
    ASSERT_TRUE(gradients.ok()) << gradients.status();
    sums.push_back((*gradients)[1]);
  }
  const auto module = std::move(p).Build(*p.builder().Add(Opcode::kTuple, sums));
  ASSERT_TRUE(module.ok()) << module.status();
  const std::string text = PrintModule(*module);
  const auto again =
      ParseModule(std::make_shared<const std::string>(text), std::make_shared<Context>(), "t");
  ASSERT_TRUE(again.ok()) << again.status() << text;
  EXPECT_EQ(PrintModule(*again), text);
}

TEST(Vmap, TwiceInAModuleHasComputationsOfTheirOwnNames) {
  Registries r;
  ASSERT_TRUE(
      r.targets.RegisterRule("mv", {.rule = "m k, k -> m", .reduction = {{"k", PartialOp::kSum}}})
          .ok());
  ProgramBuilder p("m");
  const InstrId x = *p.Parameter(ElementType::kF32, {3, 5, 6});
  const InstrId w = *p.Parameter(ElementType::kF32, {6});
  CheckedBuilder one(&p.module(), p.module().AddComputation("one"), &p.monoids());
  CustomCallAttrs attrs;
  attrs.target = "mv";
  const InstrId call =
      *one.CustomCall(attrs,
                      {*one.Parameter(0, p.module().context().MakeArray(ElementType::kF32, {5, 6})),
                       *one.Parameter(1, p.module().context().MakeArray(ElementType::kF32, {6}))},
                      r.targets);
  ASSERT_TRUE(one.SetRoot(call).ok());
  std::vector<InstrId> all;
  for (int k = 0; k < 3; ++k) {
    const auto made = Vmap(p.builder(), r.targets, call, {x, w}, {true, false});
    ASSERT_TRUE(made.ok()) << made.status();
    all.push_back((*made)[0]);
  }
  const auto module = std::move(p).Build(*p.builder().Add(Opcode::kTuple, all));
  ASSERT_TRUE(module.ok()) << module.status();
  const std::string text = PrintModule(*module);
  const auto again =
      ParseModule(std::make_shared<const std::string>(text), std::make_shared<Context>(), "t");
  ASSERT_TRUE(again.ok()) << again.status() << text;
}

// mv over a batch in four ways; all give what the batched product does.
class VmapTest : public ::testing::TestWithParam<int> {};

TEST_P(VmapTest, IsTheProductOfEachElement) {
  using Kind = BatchingSpec::Kind;
  for (const std::vector<bool>& batched :
       {std::vector<bool>{true, true}, {true, false}, {false, true}}) {
    Registries r;
    ASSERT_TRUE(r.targets
                    .RegisterRule("mv", {.rule = "m k, k -> m",
                                         .reduction = {{"k", PartialOp::kSum}},
                                         .pad = {{"k", 0}}})
                    .ok());
    r.Add("bmv", kBatchedProduct);
    // A kernel that takes batched operands and others alike.
    auto one = ReferenceHandler("mv", kProduct, nullptr, nullptr);
    auto many = ReferenceHandler("mv", kBatchedProduct, nullptr, nullptr);
    HandlerEntry entry;
    entry.target = "mv";
    entry.host = [one = one->host, many = many->host](const HandlerContext& c,
                                                      absl::Span<const BufferView> in,
                                                      absl::Span<const BufferView> out) {
      return in[0].rank() == 2 ? one(c, in, out) : many(c, in, out);
    };
    ASSERT_TRUE(r.handlers.Register(std::move(entry)).ok());
    const Kind kind = static_cast<Kind>(GetParam());
    // The leading form here needs both batched.
    if ((kind == Kind::kLeading || kind == Kind::kTarget) && !(batched[0] && batched[1])) continue;
    ASSERT_TRUE(r.targets.RegisterBatching("mv", {kind, kind == Kind::kTarget ? "bmv" : ""}).ok());

    ProgramBuilder p("m");
    CheckedBuilder& b = p.builder();
    const std::vector<int64_t> xs =
        batched[0] ? std::vector<int64_t>{3, 5, 6} : std::vector<int64_t>{5, 6};
    const std::vector<int64_t> ws =
        batched[1] ? std::vector<int64_t>{3, 6} : std::vector<int64_t>{6};
    const InstrId x = *p.Parameter(ElementType::kF32, xs), w = *p.Parameter(ElementType::kF32, ws);
    // The call of one element, in a computation of its own.
    const CompId body = p.module().AddComputation("one");
    CheckedBuilder o(&p.module(), body, &p.monoids());
    CustomCallAttrs attrs;
    attrs.target = "mv";
    const InstrId call = *o.CustomCall(attrs,
                                       {*o.Parameter(0, *p.Array(ElementType::kF32, {5, 6})),
                                        *o.Parameter(1, *p.Array(ElementType::kF32, {6}))},
                                       *p.Array(ElementType::kF32, {5}));
    ASSERT_TRUE(o.SetRoot(call).ok());
    const auto made = Vmap(b, r.targets, call, {x, w}, batched);
    ASSERT_TRUE(made.ok()) << made.status();
    ASSERT_EQ(made->size(), 1);
    EXPECT_EQ(b.shape((*made)[0])->ToString(false), "f32[3,5]");
    auto module = std::move(p).Build((*made)[0]);
    ASSERT_TRUE(module.ok()) << module.status();
    const std::string text = PrintModule(*module);
    const std::vector<Tensor> inputs = RandomInputs(ParameterLeaves(*module), 3);
    const std::vector<Tensor> got = RunOne(*std::move(module), r.handlers, inputs);
    ASSERT_EQ(got.size(), 1) << text;
    const float *xf = inputs[0].data<float>(), *wf = inputs[1].data<float>();
    for (int64_t n = 0; n < 3; ++n) {
      for (int64_t i = 0; i < 5; ++i) {
        float want = 0;
        for (int64_t k = 0; k < 6; ++k) {
          want += xf[(batched[0] ? 30 * n : 0) + 6 * i + k] * wf[(batched[1] ? 6 * n : 0) + k];
        }
        EXPECT_EQ(got[0].data<float>()[5 * n + i], want) << text;
      }
    }
    // Partitioned over the batch and the rows: the same.
    for (const char* tiles : {"devices=[2,1]<=[2]", "devices=[1,2]<=[2]"}) {
      auto parsed = ParseModule(std::make_shared<const std::string>(text),
                                std::make_shared<Context>(), "vmap");
      ASSERT_TRUE(parsed.ok()) << parsed.status();
      const Computation& main = parsed->comp(parsed->entry());
      parsed->header.num_partitions = 2;
      parsed->header.has_num_partitions = true;
      Instruction& first = parsed->mutable_instr(main.parameters[0]);
      const std::string sharding =
          first.shape->rank() == 3 ? std::string(tiles).insert(std::string(tiles).find(']'), ",1")
                                   : std::string(tiles);
      first.sharding =
          InternHloSharding(parsed->context(), *ParseHloSharding("{" + sharding + "}"));
      RunOptions options;
      options.partition.targets = &r.targets;
      options.handlers = &r.handlers;
      const auto result = Verify(*std::move(parsed), options, 1, {}, nullptr);
      ASSERT_TRUE(result.ok()) << result.status();
      EXPECT_EQ(result->status, VerifyResult::Status::kOk) << VerifyJson(*result);
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Ways, VmapTest, ::testing::Range(0, 4));

TEST(Vmap, SaysWhatDoesNotFit) {
  Registries r;
  r.Add("mv", kProduct);
  ProgramBuilder p("m");
  const InstrId x = *p.Parameter(ElementType::kF32, {5, 6}),
                w = *p.Parameter(ElementType::kF32, {6});
  CustomCallAttrs attrs;
  attrs.target = "mv";
  const InstrId y = *p.builder().CustomCall(attrs, {x, w}, r.targets);
  auto code = [&](std::vector<InstrId> operands, std::vector<bool> batched) {
    return std::string(DiagnosticCode(Vmap(p.builder(), r.targets, y, operands, batched).status()));
  };
  EXPECT_EQ(code({x, w}, {false, false}), "E123");
  EXPECT_EQ(code({x, w}, {true, false}), "E123");
  EXPECT_EQ(code({x}, {true}), "E123");
  EXPECT_EQ(code({x, InstrId()}, {false, true}), "E123");
}

// A call within a loop: the stacked dimension is whole in it, rows are not.
TEST(Scan, ShardsWhatTheCallLetsAndNotTheSteps) {
  const std::string text = R"(HloModule scan, num_partitions=4
cond { p = (s32[], f32[3,8,6], f32[8,6]) parameter(0) i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(3) ROOT c = pred[] compare(i, n), direction=LT }
body { p = (s32[], f32[3,8,6], f32[8,6]) parameter(0) i = s32[] get-tuple-element(p), index=0
  xs = f32[3,8,6] get-tuple-element(p), index=1 acc = f32[8,6] get-tuple-element(p), index=2
  z = s32[] constant(0) o = s32[] constant(1) j = s32[] add(i, o)
  x = f32[1,8,6] dynamic-slice(xs, i, z, z), dynamic_slice_sizes={1,8,6}
  r = f32[8,6] reshape(x)
  c = f32[8,6] custom-call(acc, r), custom_call_target="step"
  ROOT t = (s32[], f32[3,8,6], f32[8,6]) tuple(j, xs, c) }
ENTRY e { xs = f32[3,8,6] parameter(0), sharding={devices=[SHARDS]<=[4]}
  a = f32[8,6] parameter(1), sharding={devices=[4,1]<=[4]} z = s32[] constant(0)
  t = (s32[], f32[3,8,6], f32[8,6]) tuple(z, xs, a)
  w = (s32[], f32[3,8,6], f32[8,6]) while(t), condition=cond, body=body
  ROOT y = f32[8,6] get-tuple-element(w), index=2 })";
  Registries r;
  r.Add("step",
        "HloModule s\nENTRY e { a = f32[8,6] parameter(0) x = f32[8,6] parameter(1)\n"
        "b = f32[8,6] multiply(a, x) ROOT c = f32[8,6] add(b, x) }");
  for (const char* shards : {"1,4,1", "4,1,1"}) {
    auto module = ParseModule(std::make_shared<const std::string>(Replaced(text, "SHARDS", shards)),
                              std::make_shared<Context>(), "scan");
    ASSERT_TRUE(module.ok()) << module.status();
    RunOptions options;
    options.partition.targets = &r.targets;
    options.handlers = &r.handlers;
    const auto result = Verify(*std::move(module), options, 1, {}, nullptr);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->status, VerifyResult::Status::kOk) << VerifyJson(*result);
  }
}

}  // namespace
}  // namespace shardcall
