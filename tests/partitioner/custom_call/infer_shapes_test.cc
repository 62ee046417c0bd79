// SPDX-License-Identifier: Apache-2.0
// Shapes of calls by target: from the rule string, from a function, in the
// builder, the verifier and the partitioner.
#include <stdexcept>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "shardcall/partitioner/api/partition.h"
#include "shardcall/partitioner/custom_call/registry.h"
#include "shardcall/partitioner/custom_call/type_signature.h"
#include "shardcall/partitioner/ir/build/checked_builder.h"
#include "shardcall/partitioner/ir/text/parser.h"
#include "shardcall/partitioner/ir/verifier/verifier.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
namespace {

using ::testing::HasSubstr;

class InferShapesTest : public ::testing::Test {
 protected:
  const Shape* A(ElementType type, std::vector<int64_t> dims) {
    return context_.MakeArray(type, dims);
  }
  const Shape* F32(std::vector<int64_t> dims) { return A(ElementType::kF32, dims); }
  std::string Shape_(absl::string_view target, std::vector<const Shape*> operands,
                     absl::string_view config = "") {
    const absl::StatusOr<const Shape*> s =
        targets_.InferShape({&context_, target, config, operands});
    return s.ok() ? (*s)->ToString(false) : std::string(s.status().message());
  }
  std::string Check(absl::string_view target, std::vector<const Shape*> operands,
                    const Shape* declared) {
    const absl::Status s = targets_.CheckShape({&context_, target, "", operands}, declared);
    return s.ok() ? "ok" : std::string(s.message());
  }
  Context context_;
  TargetRegistry targets_;
};

TEST_F(InferShapesTest, FactorsGiveTheSizes) {
  ASSERT_TRUE(targets_
                  .RegisterRule("mm", {.rule = "... i k, k j -> ... i j",
                                       .reduction = {{"k", PartialOp::kSum}}})
                  .ok());
  ASSERT_TRUE(targets_.RegisterRule("merge", {.rule = "a b c -> (a b) c, (b c), "}).ok());
  ASSERT_TRUE(
      targets_
          .RegisterRule("split",
                        {.rule = "(g r) d -> g d", .need_replication = {"r"}, .sizes = {{"r", 2}}})
          .ok());
  ASSERT_TRUE(targets_.RegisterRule("pair", {.rule = "...1 a, ...2 b -> ...1 b, ...2 a"}).ok());
  EXPECT_EQ(Shape_("mm", {F32({2, 5, 3}), F32({3, 7})}), "f32[2,5,7]");
  EXPECT_EQ(Shape_("merge", {F32({2, 3, 4})}), "(f32[6,4], f32[12], f32[])");
  EXPECT_EQ(Shape_("split", {F32({6, 4})}), "f32[3,4]");
  EXPECT_EQ(Shape_("pair", {F32({2, 9}), F32({3, 4, 8})}), "(f32[2,8], f32[3,4,9])");
  EXPECT_THAT(Shape_("mm", {F32({5, 3}), F32({4, 7})}),
              testing::AllOf(HasSubstr("E111"), HasSubstr("factor k")));
  EXPECT_THAT(Shape_("split", {F32({5, 4})}), HasSubstr("E111"));
  ASSERT_TRUE(targets_.RegisterRule("grouped", {.rule = "b (k g), b k -> b k g"}).ok());
  EXPECT_EQ(Shape_("grouped", {F32({2, 12}), F32({2, 4})}), "f32[2,4,3]");
  ASSERT_TRUE(
      targets_
          .RegisterRule("chain", {.rule = "(a b), (b c), c -> a", .need_replication = {"b", "c"}})
          .ok());
  EXPECT_EQ(Shape_("chain", {F32({6}), F32({15}), F32({5})}), "f32[2]");
  EXPECT_THAT(Shape_("mm", {F32({5, 3})}), HasSubstr("E111"));
}

TEST_F(InferShapesTest, TypesFollowTheirSignature) {
  ASSERT_TRUE(targets_
                  .RegisterRules(
                      "r", {{.text = {.rule = "i, i -> i, i"}, .types = "T, s32 -> real(T), pred"}})
                  .ok());
  EXPECT_EQ(Shape_("r", {A(ElementType::kC128, {4}), A(ElementType::kS32, {4})}),
            "(f64[4], pred[4])");
  EXPECT_THAT(Shape_("r", {F32({4}), F32({4})}),
              testing::AllOf(HasSubstr("E112"), HasSubstr("operand 1")));
  ASSERT_TRUE(targets_.RegisterRule("plain", {.rule = "i, i -> i"}).ok());
  EXPECT_EQ(Shape_("plain", {A(ElementType::kS32, {4}), F32({4})}), "f32[4]");
  EXPECT_THAT(Shape_("plain", {A(ElementType::kS32, {4}), A(ElementType::kS8, {4})}),
              testing::AllOf(HasSubstr("E112"), HasSubstr("none of them is a float")));
  EXPECT_EQ(Shape_("plain", {A(ElementType::kBF16, {4}), A(ElementType::kBF16, {4})}), "bf16[4]");
}

TEST_F(InferShapesTest, ARuleThatCombinesNothingHasNoResult) {
  const std::pair<RuleAlternative, const char*> cases[] = {
      {{.text = {.rule = "b d ->"}}, "()"},
      {{.text = {.rule = "b d ->", .need_replication = {"d"}}}, "()"},
      {{.text = {.rule = "... ->"}}, "()"},
      {{.text = {.rule = "b d ->", .need_replication = {"b", "d"}}}, "f32[]"},
      {{.text = {.rule = "b d ->", .need_replication = {"b", "d"}}, .types = "T ->"}, "()"},
      {{.text = {.rule = "b d ->", .reduction = {{"b", PartialOp::kSum}, {"d", PartialOp::kSum}}}},
       "f32[]"}};
  for (const auto& [rule, shape] : cases) {
    TargetRegistry targets;
    ASSERT_TRUE(targets.RegisterRules("t", {rule}).ok()) << rule.text.rule;
    const std::vector<const Shape*> operands = {F32({4, 2})};
    const auto made = targets.InferShape({&context_, "t", "", operands});
    ASSERT_TRUE(made.ok()) << made.status();
    EXPECT_EQ((*made)->ToString(false), shape) << rule.text.rule << rule.types;
  }
}

TEST_F(InferShapesTest, OperandsChooseAmongSeveralSignatures) {
  ASSERT_TRUE(targets_
                  .RegisterRules("s", {{.text = {.rule = "i j -> j i"}, .types = "f32 -> f32"},
                                       {.text = {.rule = "i j -> i j"}, .types = "s32 -> f32"},
                                       {.text = {.rule = "i j -> i j, i j"},
                                        .when = {{"both", {true}}},
                                        .types = "s32 -> s32, f32"}})
                  .ok());
  EXPECT_EQ(Shape_("s", {F32({4, 2})}), "f32[2,4]");
  EXPECT_EQ(Shape_("s", {A(ElementType::kS32, {4, 2})}), "f32[4,2]");
  EXPECT_THAT(Shape_("s", {A(ElementType::kU8, {4, 2})}),
              HasSubstr("E111 no rule of target \"s\" fits this call"));
}

TEST_F(InferShapesTest, ARuleForTheCallsAttributesComesBeforeOneThatFitsAllOperands) {
  for (const bool reversed : {false, true}) {
    TargetRegistry targets;
    std::vector<RuleAlternative> rules = {
        {.text = {.rule = "i j -> i j"}, .types = "f32 -> f32"},
        {.text = {.rule = "i j -> i j"}, .when = {{"low", {true}}}, .types = "f32 -> bf16"}};
    if (reversed) std::swap(rules[0], rules[1]);
    ASSERT_TRUE(targets.RegisterRules("y", rules).ok());
    const std::vector<const Shape*> operands = {F32({4, 2})};
    const auto of = [&](absl::string_view config) {
      return (*targets.InferShape({&context_, "y", config, operands}))->ToString(false);
    };
    EXPECT_EQ(of("{low = true}"), "bf16[4,2]");
    EXPECT_EQ(of("{low = false}"), "f32[4,2]");
    EXPECT_EQ(of(""), "f32[4,2]");
  }
}

TEST_F(InferShapesTest, ACallThatNoRuleFitsIsToldAsWhereItIsPartitioned) {
  ASSERT_TRUE(
      targets_
          .RegisterRules("w", {{.text = {.rule = "i j -> i j"}, .when = {{"axis", {int64_t{1}}}}}})
          .ok());
  const std::vector<const Shape*> operands = {F32({4, 2})}, row = {F32({4})};
  const auto of = [&](absl::string_view config, absl::Span<const Shape* const> x) {
    return std::string(targets_.InferShape({&context_, "w", config, x}).status().message());
  };
  EXPECT_EQ(of("{axis = 7 : i64}", operands),
            "E111 no rule of target \"w\" is for these attributes: found {axis = 7 : i64}. Fix: "
            "Register a rule for this backend_config, or one whose `when` it satisfies");
  EXPECT_THAT(of("{axis = 1 : i64}", row),
              testing::AllOf(HasSubstr("E111 no rule of target \"w\" fits this call: expected "
                                       "\"i j -> i j\" when {axis = 1}, found (f32[4])"),
                             HasSubstr("as many operands, results and dimensions")));
}

TEST_F(InferShapesTest, BadTypeSignaturesAreRefusedOnRegistration) {
  for (const char* types : {"T", "T -> U", "T, T -> T", "T -> T, T", "x32 -> f32", "T -> real(T",
                            "T -> real(TT)", "-> T", "T -> t"}) {
    const absl::Status s =
        targets_.RegisterRules("bad", {{.text = {.rule = "i -> i"}, .types = types}});
    EXPECT_EQ(DiagnosticCode(s), "E110") << types;
  }
  EXPECT_TRUE(targets_.List().empty());
}

TEST_F(InferShapesTest, ShippedTargetsInferTheirResults) {
  ASSERT_TRUE(RegisterBuiltinTargets(targets_).ok());
  const Shape* x = A(ElementType::kBF16, {4, 16, 8});
  EXPECT_EQ(Shape_("rms_norm", {x, A(ElementType::kBF16, {8})}), "(bf16[4,16,8], f32[4,16])");
  EXPECT_EQ(Shape_("custom_relu", {x}), "bf16[4,16,8]");
  EXPECT_EQ(Shape_("cublas_gemm", {F32({3, 4}), F32({5, 4})}, "{transb = \"T\"}"), "f32[3,5]");
  const Shape* q = F32({2, 6, 4, 8});
  EXPECT_EQ(Shape_("flash_attention_fwd", {q, F32({2, 6, 2, 8}), F32({2, 6, 2, 8})}),
            "(f32[2,6,4,8], f32[2,4,6])");
  EXPECT_EQ(Shape_("softmax_cross_entropy", {x, A(ElementType::kS32, {4, 16})}), "f32[4,16]");
  const Shape* columns = A(ElementType::kS32, {9});
  EXPECT_EQ(Shape_("sparse_matmul", {F32({9}), columns, A(ElementType::kS32, {5}), F32({3, 7})}),
            "f32[4,7]");
  EXPECT_THAT(Shape_("sparse_matmul", {F32({9}), columns, A(ElementType::kS32, {0}), F32({3, 7})}),
              HasSubstr("E121"));
}

TEST_F(InferShapesTest, AFunctionStandsForTheRule) {
  ASSERT_TRUE(targets_.RegisterBatchPartitionable("top2", 1).ok());
  EXPECT_THAT(Shape_("top2", {F32({4, 9})}), HasSubstr("batch_dims"));
  ASSERT_TRUE(targets_
                  .RegisterShapeInference(
                      "top2",
                      [](const ShapeRequest& call) -> absl::StatusOr<const Shape*> {
                        const Shape* x = call.operands[0];
                        if (x->rank() != 2)
                          return absl::InvalidArgumentError("rows and columns are needed");
                        if (x->dim(1) < 2) throw std::runtime_error("too narrow");
                        return call.context->MakeArray(x->element_type(), {x->dim(0), 2});
                      })
                  .ok());
  EXPECT_EQ(Shape_("top2", {F32({4, 9})}), "f32[4,2]");
  EXPECT_THAT(Shape_("top2", {F32({4})}),
              testing::AllOf(HasSubstr("E121"), HasSubstr("rows and columns")));
  EXPECT_THAT(Shape_("top2", {F32({4, 1})}),
              testing::AllOf(HasSubstr("E121"), HasSubstr("threw: too narrow")));
  EXPECT_EQ(
      DiagnosticCode(targets_.RegisterShapeInference(
          "top2", [](const ShapeRequest&) -> absl::StatusOr<const Shape*> { return nullptr; })),
      "E105");
  EXPECT_EQ(DiagnosticCode(targets_.RegisterShapeInference("x", nullptr)), "E105");
  EXPECT_EQ(Check("top2", {F32({4, 9})}, F32({4, 2})), "ok");
  EXPECT_THAT(Check("top2", {F32({4, 9})}, F32({4, 3})),
              testing::AllOf(HasSubstr("E023"), HasSubstr("f32[4,2]")));
}

TEST_F(InferShapesTest, AShapeThatTheRuleContradictsIsToldWithTheRule) {
  ASSERT_TRUE(targets_.RegisterRule("t", {.rule = "a b -> b a"}, "", "rules.json").ok());
  EXPECT_THAT(Check("t", {F32({4, 8})}, F32({4, 8})),
              testing::AllOf(HasSubstr("E023"), HasSubstr("rule \"a b -> b a\" of \"t\""),
                             HasSubstr("rules.json"), HasSubstr("or correct the rule")));
  ASSERT_TRUE(targets_
                  .RegisterShapeInference("t",
                                          [](const ShapeRequest& call) {
                                            return absl::StatusOr<const Shape*>(call.operands[0]);
                                          })
                  .ok());
  EXPECT_THAT(Check("t", {F32({4, 8})}, F32({8, 4})),
              testing::AllOf(HasSubstr("E023"), HasSubstr("shape function of \"t\"")));
}

TEST_F(InferShapesTest, DeclaredShapesAreHeldAgainstEverySignature) {
  ASSERT_TRUE(RegisterBuiltinTargets(targets_).ok());
  const Shape* x = F32({4, 8});
  EXPECT_EQ(Check("rms_norm", {x, F32({8})}, context_.MakeTuple({x, F32({4})})), "ok");
  EXPECT_EQ(Check("rms_norm", {x, F32({8})}, x), "ok");
  EXPECT_THAT(Check("rms_norm", {x, F32({8})}, F32({4, 9})), HasSubstr("E023"));
  EXPECT_THAT(Check("rms_norm", {x, F32({8})}, A(ElementType::kBF16, {4, 8})), HasSubstr("E023"));
  EXPECT_EQ(Check("unknown", {x}, x), "ok");
  const bool first[] = {true, false};
  const Shape* bounded = context_.MakeDynamicArray(ElementType::kF32, {4, 9}, first);
  EXPECT_EQ(Check("rms_norm", {x, F32({8})}, bounded), "ok");
  EXPECT_EQ(Check("lapack_sgeqrf_ffi", {x}, context_.MakeTuple({x, F32({4})})), "ok");
}

TEST_F(InferShapesTest, TheBuilderNeedsNoShape) {
  ASSERT_TRUE(RegisterBuiltinTargets(targets_).ok());
  Module module(std::make_shared<Context>());
  MonoidTable monoids(&module);
  const CompId main = module.AddComputation("main");
  module.set_entry(main);
  CheckedBuilder b(&module, main, &monoids);
  Context& c = module.context();
  const InstrId x = *b.Parameter(0, c.WithDefaultLayout(c.MakeArray(ElementType::kF32, {4, 8})));
  const InstrId g = *b.Parameter(1, c.WithDefaultLayout(c.MakeArray(ElementType::kF32, {8})));
  CustomCallAttrs attrs;
  attrs.target = "rms_norm";
  attrs.api_version = 4;
  const auto norm = b.CustomCall(attrs, {x, g}, targets_, "{eps = 1.0e-6 : f32}");
  ASSERT_TRUE(norm.ok()) << norm.status();
  EXPECT_EQ(b.shape(*norm)->ToString(), "(f32[4,8]{1,0}, f32[4]{0})");
  EXPECT_EQ(module.instr(*norm).backend_config, "{eps = 1.0e-6 : f32}");
  attrs.target = "nothing";
  const size_t before = module.num_instructions();
  EXPECT_EQ(DiagnosticCode(b.CustomCall(attrs, {x, g}, targets_).status()), "E112");
  EXPECT_EQ(module.num_instructions(), before);
  ASSERT_TRUE(b.SetRoot(*norm).ok());
  EXPECT_TRUE(VerifyModule(module, "", &targets_).ok());
}

absl::StatusOr<Module> Parse(const std::string& text) {
  return ParseModule(std::make_shared<const std::string>(text), std::make_shared<Context>(), "t");
}

TEST_F(InferShapesTest, AWrongDeclaredShapeIsAnErrorOfVerifierAndPartitioner) {
  ASSERT_TRUE(RegisterBuiltinTargets(targets_).ok());
  const std::string text = R"(HloModule m, num_partitions=2
ENTRY main {
  x = f32[4,8] parameter(0), sharding={devices=[2,1]<=[2]}
  ROOT c = bf16[4,8] custom-call(x), custom_call_target="custom_relu", api_version=API_VERSION_TYPED_FFI
}
)";
  absl::StatusOr<Module> module = Parse(text);
  ASSERT_TRUE(module.ok()) << module.status();
  EXPECT_TRUE(VerifyModule(*module, "m.hlo").ok());
  const absl::Status s = VerifyModule(*module, "m.hlo", &targets_);
  EXPECT_EQ(DiagnosticCode(s), "E023");
  EXPECT_THAT(std::string(s.message()),
              testing::AllOf(HasSubstr("f32[4,8]"), HasSubstr("%c"), HasSubstr("m.hlo")));
  const auto program = Partition(*std::move(module), {.targets = &targets_});
  EXPECT_EQ(DiagnosticCode(program.status()), "E023") << program.status();
}

// What reading `call` in a program gives: the shape of its root, or the error.
std::string Read(const std::string& call, const TargetRegistry* targets) {
  const std::string text = "HloModule m\nENTRY main {\n  x = bf16[4,8] parameter(0)\n  " + call +
                           "\n  ROOT t = tuple(c)\n}\n";
  const absl::StatusOr<Module> module = ParseModule(std::make_shared<const std::string>(text),
                                                    std::make_shared<Context>(), "m.hlo", targets);
  if (!module.ok()) return std::string(module.status().message());
  return module->instr(module->comp(module->entry()).root).shape->ToString();
}

TEST_F(InferShapesTest, TextNeedsNoShapeWhereTheTargetHasOne) {
  ASSERT_TRUE(RegisterBuiltinTargets(targets_).ok());
  ASSERT_TRUE(targets_.RegisterBatchPartitionable("top", 1).ok());
  ASSERT_TRUE(targets_
                  .RegisterShapeInference(
                      "top",
                      [](const ShapeRequest& call) -> absl::StatusOr<const Shape*> {
                        if (call.backend_config != "{k = 2}")
                          return absl::InvalidArgumentError("k must be 2");
                        return call.context->MakeArray(call.operands[0]->element_type(), {4, 2});
                      })
                  .ok());
  EXPECT_EQ(Read("c = custom-call(x), custom_call_target=\"custom_relu\"", &targets_),
            "(bf16[4,8]{1,0})");
  EXPECT_EQ(
      Read("%c = custom-call(%x, f32[8]{0} %x), custom_call_target=\"custom_relu\"", &targets_)
          .substr(0, 4),
      "E010");
  EXPECT_EQ(Read("g = bf16[8] constant({1,1,1,1,1,1,1,1})\n  c = custom-call(x, g), "
                 "custom_call_target=\"rms_norm\", backend_config={eps = 1.0e-6 : f32}",
                 &targets_),
            "((bf16[4,8]{1,0}, f32[4]{0}))");
  EXPECT_EQ(
      Read("c = custom-call(x), custom_call_target=\"top\", backend_config={k = 2}", &targets_),
      "(bf16[4,2]{1,0})");
  // What is wrong is told with its place.
  EXPECT_EQ(Read("c = custom-call(x), custom_call_target=\"top\"", &targets_),
            "E121 shape function of \"top\" failed: k must be 2: found (bf16[4,8]). Fix: Correct "
            "the call, or the target's shape function\n  in m.hlo:4:7\n"
            "  c = custom-call(x), custom_call_target=\"top\"\n      ^");
}

TEST_F(InferShapesTest, ACallWithoutAShapeSaysWhatWouldGiveOne) {
  ASSERT_TRUE(targets_.RegisterBatchPartitionable("rows", 1).ok());
  EXPECT_EQ(Read("c = custom-call(x), custom_call_target=\"rows\"", &targets_),
            "E112 the result shape of a call of \"rows\" does not follow: its registration, by "
            "batch_dims, says nothing of shapes. Fix: Give the shape, or a function for it "
            "(RegisterShapeInference, shapes= in Python)\n  in m.hlo:4:7\n"
            "  c = custom-call(x), custom_call_target=\"rows\"\n      ^");
  EXPECT_THAT(Read("c = custom-call(x), custom_call_target=\"no_such\"", &targets_),
              testing::AllOf(HasSubstr("E112"), HasSubstr("\"no_such\""),
                             HasSubstr("not registered"), HasSubstr("RegisterShapeInference")));
  EXPECT_THAT(Read("c = custom-call(x), custom_call_target=\"rows\"", nullptr),
              testing::AllOf(HasSubstr("E015"), HasSubstr("\"rows\""),
                             HasSubstr("read the text with targets")));
}

}  // namespace
}  // namespace shardcall
