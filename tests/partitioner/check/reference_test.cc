// SPDX-License-Identifier: Apache-2.0
// partition_like: rules of reference computations, and targets that go by them.
#include "shardcall/partitioner/check/reference.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "shardcall/partitioner/api/partition.h"
#include "shardcall/partitioner/api/run.h"
#include "shardcall/partitioner/api/verify.h"
#include "shardcall/partitioner/check/check_rule.h"
#include "shardcall/partitioner/check/rule_matchers.h"
#include "shardcall/partitioner/ir/text/parser.h"
#include "shardcall/partitioner/ir/text/printer.h"
#include "shardcall/partitioner/rules/resize.h"
#include "shardcall/partitioner/runtime/io/random_inputs.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
namespace {

using ::testing::HasSubstr;

constexpr char kAdd[] =
    "add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }\n";
constexpr char kMax[] =
    "max { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] maximum(a, b) }\n";

std::string Rule(const std::string& hlo) {
  const auto a = RuleOfReference("HloModule m\n" + hlo, TargetRegistry());
  if (!a.ok()) return std::string(a.status().message());
  TargetRegistry targets;
  const absl::Status s = targets.RegisterRules("t", {*a});
  if (!s.ok()) return std::string(s.message());
  std::string out = a->text.rule;
  for (const auto& [f, op] : a->text.reduction) {
    out += " " + f + ":" + std::string(PartialOpName(op));
  }
  for (const auto& f : a->text.need_replication) out += " !" + f;
  for (const auto& [f, v] : a->text.pad) out += " pad " + f + "=" + std::to_string(v);
  for (const auto& [f, n] : a->text.sizes) out += " " + f + "=" + std::to_string(n);
  return out + " | " + a->types;
}

TEST(RuleOfReference, ElementwiseDimensionsPass) {
  EXPECT_EQ(Rule("ENTRY e { x = f32[6,4] parameter(0) ROOT y = f32[6,4] exponential(x) }"),
            "i j -> i j | T -> T");
  EXPECT_EQ(Rule("ENTRY e { x = f32[6,4] parameter(0) b = f32[4] parameter(1)\n"
                 "c = f32[6,4] broadcast(b), dimensions={1}\n ROOT y = f32[6,4] add(x, c) }"),
            "i j, j -> i j | T, T -> T");
  EXPECT_EQ(Rule("ENTRY e { x = f32[6,4] parameter(0) ROOT y = f32[4,6] transpose(x), "
                 "dimensions={1,0} }"),
            "i j -> j i | T -> T");
}

// As a dump of a whole program has its results, though they have a side effect there.
TEST(RuleOfReference, MarksOfShardyOnTheResultsSayNothing) {
  EXPECT_EQ(
      Rule("ENTRY e { x = f32[6,4] parameter(0) y = f32[6,4] negate(x)\n"
           "ROOT r = f32[6,4] custom-call(y), custom_call_target=\"xla.sdy.FuncResultSharding\", "
           "custom_call_has_side_effect=true }"),
      "i j -> i j | T -> T");
}

TEST(RuleOfReference, ContractionsAreSumsWithTheirPad) {
  EXPECT_EQ(
      Rule("ENTRY e { x = f32[5,6] parameter(0) y = f32[6,7] parameter(1)\n"
           "ROOT z = f32[5,7] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0} }"),
      "i j, j k -> i k j:add pad j=0.000000 | T, T -> T");
  // What is linear passes a sum on; an addend does not.
  EXPECT_EQ(Rule(std::string(kAdd) + "ENTRY e { x = f32[5,6] parameter(0) z = f32[] constant(0)\n"
                                     "s = f32[5] reduce(x, z), dimensions={1}, to_apply=add\n"
                                     "ROOT n = f32[5] negate(s) }"),
            "i j -> i j:add pad j=0.000000 | T -> T");
  EXPECT_EQ(
      Rule(std::string(kAdd) +
           "ENTRY e { x = f32[5,6] parameter(0) b = f32[5] parameter(1) z = f32[] constant(0)\n"
           "s = f32[5] reduce(x, z), dimensions={1}, to_apply=add\n"
           "ROOT n = f32[5] add(s, b) }"),
      "i j, i -> i !j | T, T -> T");
  // One sum of squares, and one whose root is taken.
  EXPECT_EQ(Rule(std::string(kAdd) +
                 "ENTRY e { x = f32[5,6] parameter(0) z = f32[] constant(0) q = f32[5,6] "
                 "multiply(x, x)\n s = f32[5] reduce(q, z), dimensions={1}, to_apply=add\n"
                 "ROOT t = (f32[5], f32[5,6]) tuple(s, q) }"),
            "i j -> i, i j j:add pad j=0.000000 | T -> T, T");
  EXPECT_EQ(Rule(std::string(kAdd) +
                 "ENTRY e { x = f32[5,6] parameter(0) z = f32[] constant(0) q = f32[5,6] "
                 "multiply(x, x)\n s = f32[5] reduce(q, z), dimensions={1}, to_apply=add\n"
                 "ROOT r = f32[5] sqrt(s) }"),
            "i j -> i !j | T -> T");
  EXPECT_THAT(
      Rule(std::string(kMax) + "ENTRY e { x = f32[5,6] parameter(0) z = f32[] constant(-inf)\n"
                               "ROOT s = f32[5] reduce(x, z), dimensions={1}, to_apply=max }"),
      HasSubstr("i j -> i j:max pad j=-inf"));
}

TEST(RuleOfReference, WhatWouldCommunicateWithinIsWhole) {
  const std::string softmax =
      std::string(kAdd) +
      "ENTRY e { x = f32[6,4] parameter(0) z = f32[] constant(0) e = f32[6,4] exponential(x)\n"
      "s = f32[6] reduce(e, z), dimensions={1}, to_apply=add\n"
      "b = f32[6,4] broadcast(s), dimensions={0}\n ROOT y = f32[6,4] divide(e, b) }";
  EXPECT_EQ(Rule(softmax), "i j -> i j !j | T -> T");
  // Positions, order and neighbours.
  EXPECT_EQ(Rule("ENTRY e { x = f32[6,4] parameter(0) i = f32[6,4] iota(), iota_dimension=1\n"
                 "ROOT y = f32[6,4] add(x, i) }"),
            "i j -> i j !j | T -> T");
  EXPECT_EQ(Rule("ENTRY e { x = f32[6,4] parameter(0) ROOT y = f32[6,4] reverse(x), "
                 "dimensions={0} }"),
            "i j -> i j !i | T -> T");
  EXPECT_EQ(Rule("ENTRY e { x = f32[6,4] parameter(0) ROOT y = f32[5,4] slice(x), "
                 "slice={[1:6], [0:4]} }"),
            "i j -> k j !i !k | T -> T");
  EXPECT_EQ(Rule("ENTRY e { x = f32[6,4] parameter(0) c = f32[4] constant({1,2,3,4})\n"
                 "b = f32[6,4] broadcast(c), dimensions={1}\n ROOT y = f32[6,4] multiply(x, b) }"),
            "i j -> i j !j | T -> T");
  EXPECT_EQ(Rule("ENTRY e { x = f32[6,5] parameter(0) c = f32[5] constant({1,2,3,4,5})\n"
                 "b = f32[6,5] broadcast(c), dimensions={1}\n ROOT y = f32[6,5] multiply(x, b) }"),
            "i j -> i j !j | T -> T");
}

TEST(RuleOfReference, ADimensionMetTwiceInOneTensorIsWhole) {
  EXPECT_EQ(Rule("ENTRY e { x = f32[4,4] parameter(0) t = f32[4,4] transpose(x), dimensions={1,0}\n"
                 "ROOT y = f32[4,4] add(x, t) }"),
            "i j -> k l !i !j !k !l | T -> T");
}

TEST(RuleOfReference, ReshapesCutDimensions) {
  EXPECT_EQ(Rule("ENTRY e { x = f32[24,5] parameter(0) ROOT y = f32[6,4,5] reshape(x) }"),
            "(i j) k -> i j k !j | T -> T");
}

TEST(RuleOfReference, TypesThatDifferAreSaid) {
  EXPECT_EQ(Rule("ENTRY e { x = f32[6] parameter(0) i = s32[6] parameter(1)\n"
                 "c = f32[6] convert(i)\n p = pred[6] compare(x, c), direction=GT\n"
                 "ROOT t = (pred[6], f32[6]) tuple(p, c) }"),
            "i, i -> i, i | f32, s32 -> pred, f32");
}

TEST(RuleOfReference, LargeSizesAreTriedSmall) {
  EXPECT_EQ(
      Rule("ENTRY e { x = f32[1000000,2000000] parameter(0) y = f32[2000000,70] parameter(1)\n"
           "ROOT z = f32[1000000,70] dot(x, y), lhs_contracting_dims={1}, "
           "rhs_contracting_dims={0} }"),
      "i j, j k -> i k j:add pad j=0.000000 | T, T -> T");
  EXPECT_THAT(Rule("ENTRY e { x = f32[100000,100000] parameter(0) ROOT y = f32[99999,99999] "
                   "slice(x), slice={[1:100000], [1:100000]} }"),
              testing::AnyOf(HasSubstr("E114"), HasSubstr("!i")));
}

TEST(RuleOfReference, SaysWhatItDoesNotTake) {
  EXPECT_THAT(Rule("ENTRY e { x = f32[4] parameter(0), "), HasSubstr("E0"));
  EXPECT_THAT(Rule("ENTRY e { ROOT x = f32[4] iota(), iota_dimension=0 }"), HasSubstr("E114"));
  EXPECT_THAT(Rule("ENTRY e { ROOT x = (f32[4], f32[4]) parameter(0) }"), HasSubstr("E114"));
  EXPECT_THAT(
      Rule("add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }\n"
           "ENTRY e { x = f32[4] parameter(0) ROOT y = f32[4] all-reduce(x), "
           "replica_groups={}, to_apply=add }"),
      HasSubstr("E114"));
}

// A norm with a gain: rows are independent, the mean square is over 4 columns.
const std::string kNorm = std::string("HloModule norm\n") + kAdd + R"(
ENTRY main {
  x = f32[6,4] parameter(0)
  g = f32[4] parameter(1)
  zero = f32[] constant(0)
  xx = f32[6,4] multiply(x, x)
  sum = f32[6] reduce(xx, zero), dimensions={1}, to_apply=add
  one = f32[] constant(1)
  ones = f32[6] broadcast(one), dimensions={}
  more = f32[6] add(sum, ones)
  r = f32[6] rsqrt(more)
  rows = f32[6,4] broadcast(r), dimensions={0}
  columns = f32[6,4] broadcast(g), dimensions={1}
  y = f32[6,4] multiply(x, rows)
  ROOT z = f32[6,4] multiply(y, columns)
}
)";

struct Registered {
  TargetRegistry targets;
  HandlerRegistry handlers;
};
std::unique_ptr<Registered> Norm() {
  auto r = std::make_unique<Registered>();
  EXPECT_TRUE(RegisterPartitionLike("norm", kNorm, &r->targets).ok());
  auto handler = ReferenceHandler("norm", kNorm, nullptr, nullptr);
  EXPECT_TRUE(handler.ok()) << handler.status();
  EXPECT_TRUE(r->handlers.Register(*std::move(handler)).ok());
  return r;
}

TEST(PartitionLike, TheCallPropagatesAndPartitionsAsTheBodyDoes) {
  const auto r = Norm();
  for (const char* tiles : {"devices=[4,1]<=[4]", "devices=[2,2]<=[4]", "devices=[1,4]<=[4]"}) {
    const std::string text =
        std::string(
            "HloModule m, num_partitions=4, "
            "allow_spmd_sharding_propagation_to_output={true}\n"
            "ENTRY main {\n x = f32[10,7] parameter(0), sharding={") +
        tiles +
        "}\n g = f32[7] parameter(1), sharding={replicated}\n"
        "ROOT z = f32[10,7] custom-call(x, g), custom_call_target=\"norm\"\n}\n";
    auto module =
        ParseModule(std::make_shared<const std::string>(text), std::make_shared<Context>(), "t");
    ASSERT_TRUE(module.ok()) << module.status();
    RunOptions options;
    options.partition.targets = &r->targets;
    options.handlers = &r->handlers;
    const auto result = Verify(*std::move(module), options, 1, {}, nullptr);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->status, VerifyResult::Status::kOk) << VerifyJson(*result);
  }
}

// The same program with the call, and with the body in its place.
struct LikeCase {
  const char *name, *body, *operands, *result;
};
TEST(PartitionLike, ResultsAreShardedAsTheBodyShardsThem) {
  const std::vector<LikeCase> cases = {
      {"product",
       "p { a = f32[8,12] parameter(0) b = f32[12,16] parameter(1)\n"
       "ROOT z = f32[8,16] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0} }\n",
       "x = f32[8,12] parameter(0), sharding={A}\n y = f32[12,16] parameter(1), sharding={B}\n",
       "f32[8,16]"},
      {"sum",
       "p { a = f32[8,12] parameter(0) b = f32[12] parameter(1)\n"
       "c = f32[8,12] broadcast(b), dimensions={1}\n ROOT z = f32[8,12] add(a, c) }\n",
       "x = f32[8,12] parameter(0), sharding={A}\n y = f32[12] parameter(1), "
       "sharding={replicated}\n",
       "f32[8,12]"}};
  const std::vector<std::string> tiles = {"devices=[2,2]<=[4]", "devices=[4,1]<=[4]",
                                          "devices=[1,4]<=[4]", "replicated",
                                          "devices=[1,2,2]<=[4] last_tile_dim_replicate"};
  for (const LikeCase& c : cases) {
    TargetRegistry targets;
    std::string reference = c.body;
    ASSERT_TRUE(RegisterPartitionLike("t", "HloModule m\nENTRY " + reference, &targets).ok());
    for (const std::string& a : tiles) {
      for (const std::string& b : tiles) {
        std::string outputs[2];
        for (const bool call : {false, true}) {
          std::string operands = c.operands;
          operands.replace(operands.find("{A}") + 1, 1, a);
          if (operands.find("{B}") != std::string::npos) {
            operands.replace(operands.find("{B}") + 1, 1, b);
          }
          const std::string text =
              "HloModule m, num_partitions=4, allow_spmd_sharding_propagation_to_output={true}\n" +
              reference + "ENTRY e {\n" + operands + "ROOT z = " + c.result +
              (call ? " custom-call(x, y), custom_call_target=\"t\"" : " call(x, y), to_apply=p") +
              "\n}\n";
          auto module = ParseModule(std::make_shared<const std::string>(text),
                                    std::make_shared<Context>(), "t");
          ASSERT_TRUE(module.ok()) << module.status() << text;
          const auto program = Partition(*std::move(module), {.targets = &targets});
          ASSERT_TRUE(program.ok()) << program.status();
          outputs[call] = (*program)->local.outputs[0]->sharding->ToString();
        }
        EXPECT_EQ(outputs[0], outputs[1]) << c.name << " " << a << " " << b;
      }
    }
  }
}

TEST(PartitionLike, ShapesFollowTheReference) {
  const auto r = Norm();
  Context c;
  const Shape* x = c.MakeArray(ElementType::kF32, {10, 7});
  const Shape* g = c.MakeArray(ElementType::kF32, {7});
  const Shape* wrong = c.MakeArray(ElementType::kF32, {8});
  const auto z = r->targets.InferShape({&c, "norm", "", std::vector<const Shape*>{x, g}});
  ASSERT_TRUE(z.ok()) << z.status();
  EXPECT_EQ((*z)->ToString(false), "f32[10,7]");
  EXPECT_FALSE(r->targets.InferShape({&c, "norm", "", std::vector<const Shape*>{x, wrong}}).ok());
  EXPECT_EQ(DiagnosticCode(r->targets.RegisterReference("norm", "other")), "E105");
}

RuleCheck Check(const Registered& r, const HandlerRegistry* reference) {
  const auto calls = CallsOfTarget("norm", r.targets, r.handlers);
  EXPECT_TRUE(calls.ok()) << calls.status();
  const auto check = CheckRule(
      *calls, 0, {.targets = &r.targets, .handlers = &r.handlers, .reference = reference});
  EXPECT_TRUE(check.ok()) << check.status();
  return check.ok() ? *check : RuleCheck();
}

TEST(PartitionLike, TheCheckerTakesAReferenceForAHandler) {
  const auto r = Norm();
  const HandlerRegistry none;
  EXPECT_THAT("norm", RuleHolds(r->targets, none));
  EXPECT_THAT("norm", RuleHolds(r->targets, r->handlers));
  const RuleCheck check = Check(*r, nullptr);
  EXPECT_EQ(check.verdict, RuleVerdict::kHolds) << RuleCheckJson(check);
  EXPECT_GT(check.trials, 20);
}

TEST(PartitionLike, TheCheckerHoldsTheHandlerAgainstTheReference) {
  auto r = Norm();
  HandlerRegistry reference = r->handlers;
  EXPECT_EQ(Check(*r, &reference).verdict, RuleVerdict::kHolds);
  // Row by row right by its rule, but no norm.
  HandlerRegistry other;
  HandlerEntry entry;
  entry.target = "norm";
  entry.host = [](const HandlerContext&, absl::Span<const BufferView> in,
                  absl::Span<const BufferView> out) -> absl::Status {
    if (in[0].dims != out[0].dims || in[1].dims[0] != in[0].dims[1]) {
      return absl::InvalidArgumentError("another shape");
    }
    const float* x = static_cast<const float*>(in[0].data);
    for (int64_t k = 0; k < in[0].num_elements(); ++k) static_cast<float*>(out[0].data)[k] = x[k];
    return absl::OkStatus();
  };
  ASSERT_TRUE(other.Register(std::move(entry)).ok());
  r->handlers = other;
  const RuleCheck check = Check(*r, &reference);
  EXPECT_EQ(check.verdict, RuleVerdict::kIncorrect);
  ASSERT_FALSE(check.findings.empty());
  EXPECT_THAT(check.findings[0].message, HasSubstr("reference"));
}

TEST(ResizeModule, GivesTheSameComputationOnOtherSizes) {
  auto parse = [](const std::string& text) {
    return *ParseModule(std::make_shared<const std::string>(text), std::make_shared<Context>(),
                        "t");
  };
  auto module = ResizeModule(parse(kNorm), {{3, 5}, {5}}, nullptr);
  ASSERT_TRUE(module.ok()) << module.status();
  const auto out = Evaluate(*module, RandomInputs(ParameterLeaves(*module), 0), nullptr);
  ASSERT_TRUE(out.ok());
  EXPECT_EQ(TypeAndDims((*out)[0]), "f32[3,5]");
  EXPECT_EQ(DiagnosticCode(ResizeModule(parse(kNorm), {{3, 5}, {6}}, nullptr).status()), "E113");
  EXPECT_EQ(DiagnosticCode(ResizeModule(parse(kNorm), {{3, 5}}, nullptr).status()), "E113");
  EXPECT_EQ(DiagnosticCode(ResizeModule(parse(kNorm), {{3, 5, 1}, {5}}, nullptr).status()), "E113");
  const std::string cut =
      "HloModule m\nENTRY e { x = f32[6,4] parameter(0) "
      "ROOT y = f32[5,4] slice(x), slice={[1:6], [0:4]} }";
  EXPECT_TRUE(ResizeModule(parse(cut), {{6, 9}}, nullptr).ok());
  EXPECT_EQ(DiagnosticCode(ResizeModule(parse(cut), {{7, 4}}, nullptr).status()), "E113");
  // Loops: the carry and the body change together.
  const std::string loop = R"(HloModule m
cond { p = (s32[], f32[6,4]) parameter(0) i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(3) ROOT c = pred[] compare(i, n), direction=LT }
body { p = (s32[], f32[6,4]) parameter(0) i = s32[] get-tuple-element(p), index=0
  x = f32[6,4] get-tuple-element(p), index=1 o = s32[] constant(1) j = s32[] add(i, o)
  y = f32[6,4] add(x, x) ROOT t = (s32[], f32[6,4]) tuple(j, y) }
ENTRY e { x = f32[6,4] parameter(0) z = s32[] constant(0) t = (s32[], f32[6,4]) tuple(z, x)
  w = (s32[], f32[6,4]) while(t), condition=cond, body=body
  ROOT y = f32[6,4] get-tuple-element(w), index=1 })";
  module = ResizeModule(parse(loop), {{2, 9}}, nullptr);
  ASSERT_TRUE(module.ok()) << module.status();
  EXPECT_THAT(PrintModule(*module), HasSubstr("f32[2,9]"));
}

}  // namespace
}  // namespace shardcall
