// SPDX-License-Identifier: Apache-2.0
// Lowerings: who is asked first, what comes of an answer, and the shipped ones.
#include "shardcall/partitioner/api/lower_calls.h"

#include <cmath>
#include <cstring>
#include <stdexcept>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "shardcall/kernels/builtin.h"
#include "shardcall/partitioner/api/run.h"
#include "shardcall/partitioner/api/verify.h"
#include "shardcall/partitioner/ir/text/parser.h"
#include "shardcall/partitioner/ir/text/printer.h"
#include "shardcall/partitioner/ir/verifier/verifier.h"
#include "shardcall/partitioner/runtime/float_arrays.h"
#include "shardcall/partitioner/runtime/io/random_inputs.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Module Parse(const std::string& text) {
  auto module =
      ParseModule(std::make_shared<const std::string>(text), std::make_shared<Context>(), "t");
  EXPECT_TRUE(module.ok()) << module.status();
  return *std::move(module);
}
std::string Text(const absl::StatusOr<Module>& m) {
  if (!m.ok()) return std::string(m.status().message());
  EXPECT_TRUE(VerifyModule(*m, "").ok()) << VerifyModule(*m, "");
  return PrintModule(*m);
}

constexpr char kComposite[] = R"(HloModule m
body { x = bf16[4,8] parameter(0) ROOT y = bf16[4,8] add(x, x) }
ENTRY e { x = bf16[4,8] parameter(0)
  ROOT c = bf16[4,8] call(x), to_apply=body, is_composite=true, frontend_attributes={composite.attributes={scale = 2.000000e+00 : f32},composite.name="my.twice",composite.version="1",other="kept"}
})";

LoweringFunction To(const std::string& target) {
  return
      [target](const LoweringRequest&) -> LoweringAnswer { return LoweredCall{.target = target}; };
}

TEST(Lowerings, TheMostSpecificIsAskedFirst) {
  LoweringRegistry l;
  auto chosen = [&](const char* platform) {
    const std::string text = Text(LowerCalls(Parse(kComposite), l, platform));
    for (const char* t : {"name_and_platform", "name_alone", "platform_alone", "anything"}) {
      if (text.find(std::string("custom_call_target=\"") + t + "\"") != std::string::npos) return t;
    }
    return "body";
  };
  EXPECT_STREQ(chosen("Host"), "body");
  ASSERT_TRUE(l.Register("", "", To("anything")).ok());
  EXPECT_STREQ(chosen("Host"), "anything");
  ASSERT_TRUE(l.Register("", "Host", To("platform_alone")).ok());
  EXPECT_STREQ(chosen("Host"), "platform_alone");
  EXPECT_STREQ(chosen("CUDA"), "anything");
  ASSERT_TRUE(l.Register("my.twice", "", To("name_alone")).ok());
  EXPECT_STREQ(chosen("Host"), "name_alone");
  ASSERT_TRUE(l.Register("my.twice", "Host", To("name_and_platform")).ok());
  EXPECT_STREQ(chosen("Host"), "name_and_platform");
  EXPECT_STREQ(chosen("CUDA"), "name_alone");
  EXPECT_EQ(DiagnosticCode(l.Register("x", "", nullptr)), "E105");
}

TEST(Lowerings, WhoSkipsLeavesItToTheNext) {
  LoweringRegistry l;
  std::string seen;
  ASSERT_TRUE(l.Register("my.twice", "Host", [&](const LoweringRequest& r) -> LoweringAnswer {
                 seen = std::string(r.name) + " " + std::string(r.version) + " " +
                        std::string(r.attributes) + " " + std::string(r.platform) + " " +
                        r.operands[0]->ToString(false);
                 return Skip();
               }).ok());
  std::string text = Text(LowerCalls(Parse(kComposite), l, "Host"));
  EXPECT_EQ(seen, "my.twice 1 {scale = 2.000000e+00 : f32} Host bf16[4,8]");
  EXPECT_THAT(text, HasSubstr("call(")) << text;
  EXPECT_THAT(text, Not(HasSubstr("is_composite")));
  ASSERT_TRUE(l.Register("", "", To("fallback")).ok());
  EXPECT_THAT(Text(LowerCalls(Parse(kComposite), l, "Host")), HasSubstr("fallback"));
}

// The text with a plain call of `callee`, with these attributes.
std::string PlainCall(const std::string& callee, const std::string& attributes = "") {
  return "HloModule m\n" + callee +
         " { x = f32[4,8] parameter(0) ROOT y = f32[4,8] add(x, x) }\n"
         "ENTRY e { x = f32[4,8] parameter(0)\n  ROOT c = f32[4,8] call(x), to_apply=" +
         callee + attributes + "\n}\n";
}

TEST(Lowerings, AnApiVersionThatIsNoneIsRefused) {
  for (const int64_t version : {-1, 0, 5, 9}) {
    LoweringRegistry l;
    ASSERT_TRUE(l.Register("my.twice", "", [version](const LoweringRequest&) -> LoweringAnswer {
                   return LoweredCall{.target = "twice", .api_version = version};
                 }).ok());
    EXPECT_THAT(Text(LowerCalls(Parse(kComposite), l, "Host")),
                testing::AllOf(HasSubstr("E119"), HasSubstr("expected 1 to 4, found "),
                               HasSubstr(absl::StrCat("found ", version))));
  }
}

TEST(Lowerings, APlainCallIsMarkedByAnAttribute) {
  LoweringRegistry l;
  ASSERT_TRUE(l.Register("", "", To("anything")).ok());
  const std::string text =
      PlainCall("body",
                ", frontend_attributes={composite.attributes={scale = 2.0 : f32},"
                "composite.name=\"my.twice\",other=\"kept\"}");
  EXPECT_THAT(Text(LowerCalls(Parse(text), l, "Host")), HasSubstr("anything"));
  std::string seen;
  ASSERT_TRUE(l.Register("my.twice", "Host", [&](const LoweringRequest& r) -> LoweringAnswer {
                 seen = std::string(r.name) + " " + std::string(r.attributes) +
                        (r.composite ? " body" : "");
                 return LoweredCall{.target = "twice"};
               }).ok());
  const std::string lowered = Text(LowerCalls(Parse(text), l, "Host"));
  EXPECT_EQ(seen, "my.twice {scale = 2.0 : f32} body");
  EXPECT_THAT(lowered,
              testing::AllOf(HasSubstr("custom_call_target=\"twice\""), HasSubstr("other=\"kept\""),
                             Not(HasSubstr("composite.name"))));
}

TEST(Lowerings, APlainCallIsMarkedByWhatItCalls) {
  LoweringRegistry l;
  ASSERT_TRUE(l.Register("", "", To("anything")).ok());
  // Without a lowering of that name nobody is asked: every program has calls.
  EXPECT_THAT(Text(LowerCalls(Parse(PlainCall("my_twice")), l, "Host")),
              Not(HasSubstr("custom-call")));
  ASSERT_TRUE(l.Register("my_twice", "Host", To("twice")).ok());
  for (const char* callee : {"my_twice", "my_twice.5"}) {
    EXPECT_THAT(Text(LowerCalls(Parse(PlainCall(callee)), l, "Host")),
                HasSubstr("custom_call_target=\"twice\""))
        << callee;
  }
  for (const char* callee : {"my_twice2", "my_twice.5x", "twice"}) {
    EXPECT_THAT(Text(LowerCalls(Parse(PlainCall(callee)), l, "Host")),
                Not(HasSubstr("custom-call")))
        << callee;
  }
  // Lowerings that skip leave the call as it is.
  LoweringRegistry skips;
  ASSERT_TRUE(skips.Register("my_twice", "", [](const LoweringRequest&) { return Skip(); }).ok());
  EXPECT_THAT(Text(LowerCalls(Parse(PlainCall("my_twice")), skips, "Host")), HasSubstr("call("));
  const std::string ordered = PlainCall("my_twice", ", control-predecessors={x}");
  EXPECT_THAT(Text(LowerCalls(Parse(ordered), l, "Host")), Not(HasSubstr("custom-call")));
}

TEST(Lowerings, TypesAndResultsAreConverted) {
  LoweringRegistry l;
  ASSERT_TRUE(l.Register("my.twice", "Host", [](const LoweringRequest& r) -> LoweringAnswer {
                 return LoweredCall{.target = "twice_f32",
                                    .backend_config = std::string(r.attributes),
                                    .operand_types = {ElementType::kF32},
                                    .results = {r.context->MakeArray(ElementType::kS32, {}),
                                                r.context->MakeArray(ElementType::kF32, {4, 8})},
                                    .take = {1}};
               }).ok());
  const std::string text = Text(LowerCalls(Parse(kComposite), l, "Host"));
  EXPECT_THAT(text, HasSubstr("f32[4,8]{1,0} convert("));
  EXPECT_THAT(text, HasSubstr("(s32[], f32[4,8]{1,0}) custom-call("));
  EXPECT_THAT(text, HasSubstr("backend_config={scale = 2.000000e+00 : f32}"));
  EXPECT_THAT(text, HasSubstr("bf16[4,8]{1,0} convert("));
  EXPECT_THAT(text, HasSubstr("other=\"kept\""));
  EXPECT_THAT(text, Not(HasSubstr("composite.name")));
}

TEST(Lowerings, AnswersThatDoNotFitAreErrors) {
  auto error = [](LoweringFunction f) {
    LoweringRegistry l;
    EXPECT_TRUE(l.Register("my.twice", "", std::move(f)).ok());
    return std::string(LowerCalls(Parse(kComposite), l, "Host").status().message());
  };
  EXPECT_THAT(error(To("")), HasSubstr("E119"));
  EXPECT_THAT(error([](const LoweringRequest&) -> LoweringAnswer {
                return LoweredCall{.target = "t",
                                   .operand_types = {ElementType::kF32, ElementType::kF32}};
              }),
              HasSubstr("E119"));
  EXPECT_THAT(error([](const LoweringRequest&) -> LoweringAnswer {
                return LoweredCall{.target = "t", .operand_types = {ElementType::kToken}};
              }),
              HasSubstr("E119"));
  EXPECT_THAT(error([](const LoweringRequest& r) -> LoweringAnswer {
                return LoweredCall{.target = "t",
                                   .results = {r.context->MakeArray(ElementType::kBF16, {8, 4})}};
              }),
              HasSubstr("E119"));
  EXPECT_THAT(error([](const LoweringRequest&) -> LoweringAnswer {
                return LoweredCall{.target = "t", .take = {3}};
              }),
              HasSubstr("E119"));
  EXPECT_THAT(error([](const LoweringRequest&) -> LoweringAnswer {
                throw std::runtime_error("on strike");
              }),
              testing::AllOf(HasSubstr("E121"), HasSubstr("on strike")));
  EXPECT_THAT(
      error([](const LoweringRequest&) -> LoweringAnswer { return absl::InternalError("no"); }),
      testing::AllOf(HasSubstr("E121"), HasSubstr("my.twice")));
}

TEST(Lowerings, AHandlerOfTheNameTakesThePlaceOfTheBody) {
  HandlerRegistry handlers;
  LoweringRegistry l;
  TargetRegistry targets;
  ASSERT_TRUE(l.Register("", "Host", LowerToHandlers(&handlers, &targets)).ok());
  EXPECT_THAT(Text(LowerCalls(Parse(kComposite), l, "Host")), Not(HasSubstr("custom-call")));
  HandlerEntry entry;
  entry.target = "my.twice";
  entry.host = [](const HandlerContext& c, absl::Span<const BufferView>,
                  absl::Span<const BufferView> out) -> absl::Status {
    auto scale = c.attribute_map().GetFloat("scale", 0);
    if (!scale.ok() || *scale != 2) return absl::InvalidArgumentError("scale");
    std::memset(out[0].data, 0, out[0].byte_size());
    return absl::OkStatus();
  };
  ASSERT_TRUE(handlers.Register(std::move(entry)).ok());
  // The body can be partitioned; a call without a rule could not.
  EXPECT_THAT(Text(LowerCalls(Parse(kComposite), l, "Host")), Not(HasSubstr("custom-call")));
  ASSERT_TRUE(targets.RegisterRule("my.twice", {.rule = "... -> ..."}).ok());
  auto lowered = LowerCalls(Parse(kComposite), l, "Host");
  EXPECT_THAT(Text(lowered), HasSubstr("custom_call_target=\"my.twice\""));
  const std::vector<Tensor> x = RandomInputs(ParameterLeaves(*lowered), 1);
  const auto out = Evaluate(*lowered, x, &handlers);
  ASSERT_TRUE(out.ok()) << out.status();
  for (int64_t k = 0; k < (*out)[0].byte_size(); ++k) EXPECT_EQ((*out)[0].data()[k], 0);
  EXPECT_THAT(Text(LowerCalls(Parse(kComposite), l, "CUDA")), Not(HasSubstr("custom-call")));
}

// QR and eigenvalues of TPU programs, on the host's LAPACK.
struct Linalg {
  Linalg() {
    EXPECT_TRUE(RegisterBuiltinTargets(targets).ok());
    EXPECT_TRUE(RegisterBuiltinHandlers(handlers).ok());
    EXPECT_TRUE(RegisterBuiltinLowerings(lowerings).ok());
  }
  std::vector<Tensor> Run(const std::string& text) {
    auto lowered = LowerCalls(Parse(text), lowerings, "Host");
    EXPECT_TRUE(lowered.ok()) << lowered.status();
    const std::vector<Tensor> x = RandomInputs(ParameterLeaves(*lowered), 4);
    auto out = Evaluate(*lowered, x, &handlers);
    EXPECT_TRUE(out.ok()) << out.status();
    return out.ok() ? *out : std::vector<Tensor>();
  }
  TargetRegistry targets;
  HandlerRegistry handlers;
  LoweringRegistry lowerings;
};

// `T` as a type.
std::string Typed(std::string text, const std::string& type) {
  for (size_t at = text.find("T["); at != std::string::npos; at = text.find("T[", at + 1)) {
    text.replace(at, 1, type);
  }
  return text;
}

constexpr char kQr[] = R"(HloModule qr, num_partitions=3
ENTRY e { a = T[3,5,4] parameter(0), sharding={devices=[3,1,1]<=[3]}
  f = (T[3,5,4], T[3,4]) custom-call(a), custom_call_target="Qr"
  p = T[3,5,4] get-tuple-element(f), index=0
  t = T[3,4] get-tuple-element(f), index=1
  q = T[3,5,4] custom-call(p, t), custom_call_target="ProductOfElementaryHouseholderReflectors"
  i = s32[4,4] iota(), iota_dimension=0
  j = s32[4,4] iota(), iota_dimension=1
  up = pred[4,4] compare(i, j), direction=LE
  ups = pred[3,4,4] broadcast(up), dimensions={1,2}
  top = T[3,4,4] slice(p), slice={[0:3], [0:4], [0:4]}
  z = T[] constant(0)
  zs = T[3,4,4] broadcast(z), dimensions={}
  r = T[3,4,4] select(ups, top, zs)
  ROOT qr = T[3,5,4] dot(q, r), lhs_batch_dims={0}, rhs_batch_dims={0},
    lhs_contracting_dims={2}, rhs_contracting_dims={1}
})";

TEST(Lowerings, QrGoesToLapackInEveryType) {
  Linalg l;
  for (const auto& [type, target, error] : {std::make_tuple("f32", "lapack_sgeqrf_ffi", 1e-5),
                                            std::make_tuple("f64", "lapack_dgeqrf_ffi", 1e-12),
                                            std::make_tuple("bf16", "lapack_sgeqrf_ffi", 0.1)}) {
    const std::string text = Typed(kQr, type);
    EXPECT_THAT(Text(LowerCalls(Parse(text), l.lowerings, "Host")), HasSubstr(target));
    auto lowered = LowerCalls(Parse(text), l.lowerings, "Host");
    const std::vector<Tensor> x = RandomInputs(ParameterLeaves(*lowered), 4);
    const std::vector<Tensor> out = l.Run(text);
    ASSERT_EQ(out.size(), 1);
    const std::vector<double> a = ToDoubles(x[0]), qr = ToDoubles(out[0]);
    for (size_t k = 0; k < a.size(); ++k) EXPECT_NEAR(qr[k], a[k], error) << type;
    // Over devices, a matrix each.
    RunOptions options;
    options.partition.targets = &l.targets;
    options.handlers = &l.handlers;
    const auto result = Verify(*std::move(lowered), options, 4, {}, nullptr);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->status, VerifyResult::Status::kOk) << VerifyJson(*result);
  }
  std::string complex = Typed(kQr, "c64");
  complex.replace(complex.find("constant(0)"), 11, "constant((0, 0))");
  EXPECT_THAT(Text(LowerCalls(Parse(complex), l.lowerings, "Host")),
              HasSubstr("lapack_cungqr_ffi"));
  EXPECT_THAT(Text(LowerCalls(Parse(Typed(kQr, "f32")), l.lowerings, "CUDA")),
              HasSubstr("custom_call_target=\"Qr\""));
}

// v diag(w) v^T is the matrix, whose lower (or upper) half counts.
constexpr char kEigh[] = R"(HloModule eigh
ENTRY e { a = T[2,4,4] parameter(0)
  f = (T[2,4,4], T[2,4]) custom-call(a), custom_call_target="Eigh", backend_config="HALF,1,100,1e-6"
  v = T[2,4,4] get-tuple-element(f), index=0
  w = T[2,4] get-tuple-element(f), index=1
  ws = T[2,4,4] broadcast(w), dimensions={0,2}
  vw = T[2,4,4] multiply(v, ws)
  ROOT m = T[2,4,4] dot(vw, v), lhs_batch_dims={0}, rhs_batch_dims={0},
    lhs_contracting_dims={2}, rhs_contracting_dims={2}
})";

TEST(Lowerings, EighGoesToLapackWithItsHalf) {
  Linalg l;
  for (const bool lower : {true, false}) {
    std::string text = Typed(kEigh, "f32");
    text.replace(text.find("HALF"), 4, lower ? "1" : "0");
    auto lowered = LowerCalls(Parse(text), l.lowerings, "Host");
    EXPECT_THAT(Text(lowered), HasSubstr("lapack_ssyevd_ffi"));
    const std::vector<Tensor> x = RandomInputs(ParameterLeaves(*lowered), 4);
    const std::vector<Tensor> out = l.Run(text);
    ASSERT_EQ(out.size(), 1);
    const float *a = x[0].data<float>(), *m = out[0].data<float>();
    for (int b = 0; b < 2; ++b) {
      for (int i = 0; i < 4; ++i) {
        for (int j = 0; j < 4; ++j) {
          const bool kept = lower ? i >= j : i <= j;
          EXPECT_NEAR(m[16 * b + 4 * i + j], a[16 * b + (kept ? 4 * i + j : 4 * j + i)], 1e-4)
              << lower;
        }
      }
    }
  }
}

}  // namespace
}  // namespace shardcall
