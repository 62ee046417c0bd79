// SPDX-License-Identifier: Apache-2.0
// The transposed rule of a VJP in sizes that do not divide: what padding adds nothing
// is known from the rule's own pads, or the VJP says it; else it is E150.
#include <algorithm>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/substitute.h"
#include "shardcall/partitioner/check/check_target.h"
#include "shardcall/partitioner/check/reference.h"
#include "shardcall/partitioner/ir/text/parser.h"
#include "tests/support/verify_text.h"

namespace shardcall {
namespace {

// y[b] = s sum over k of (x[b,k] - 1) w[k]: with x = 1 or w = 0 nothing is added.
constexpr char kBackward[] = R"(HloModule bwd
add { p = f32[] parameter(0) q = f32[] parameter(1) ROOT r = f32[] add(p, q) }
ENTRY main { dy = f32[7] parameter(0) x = f32[7,3] parameter(1) w = f32[3] parameter(2)
  s = f32[] parameter(3) one = f32[] constant(1) zero = f32[] constant(0)
  ones = f32[7,3] broadcast(one), dimensions={}
  shifted = f32[7,3] subtract(x, ones)
  dyb = f32[7,3] broadcast(dy), dimensions={0}
  wb = f32[7,3] broadcast(w), dimensions={1}
  sb = f32[7,3] broadcast(s), dimensions={}
  dys = f32[7,3] multiply(dyb, sb)
  dx = f32[7,3] multiply(dys, wb)
  dws = f32[7,3] multiply(dys, shifted)
  dw = f32[3] reduce(dws, zero), dimensions={0}, to_apply=add
  each = f32[7,3] multiply(dyb, shifted)
  weighed = f32[7,3] multiply(each, wb)
  ds = f32[] reduce(weighed, zero), dimensions={0,1}, to_apply=add
  ROOT t = (f32[7,3], f32[3], f32[]) tuple(dx, dw, ds) })";

VjpSpec Backward(std::vector<std::pair<std::string, double>> pad) {
  return {.target = "bwd",
          .arguments = {VjpArgument::Cotangent(0), VjpArgument::Operand(0), VjpArgument::Operand(1),
                        VjpArgument::Operand(2)},
          .gradients = {0, 1, 2},
          .backend_config = std::nullopt,
          .pad = std::move(pad)};
}

class VjpPadding : public testing::Test {
 protected:
  void Register(std::vector<std::pair<std::string, double>> forward,
                std::vector<std::pair<std::string, double>> backward) {
    targets_ = TargetRegistry();
    ASSERT_TRUE(targets_
                    .RegisterRule("fwd", {.rule = "b k, k, -> b",
                                          .reduction = {{"k", PartialOp::kSum}},
                                          .pad = std::move(forward)})
                    .ok());
    const absl::Status status = targets_.RegisterVjp("fwd", Backward(std::move(backward)));
    ASSERT_TRUE(status.ok()) << status;
    if (handlers_.List().empty()) {
      ASSERT_TRUE(handlers_.Register(*ReferenceHandler("bwd", kBackward, nullptr, nullptr)).ok());
    }
  }
  // A call over a mesh of n x m devices, rows over n and columns over m.
  std::string Why(int64_t b, int64_t k, int n, int m) {
    const std::string text = absl::Substitute(
        R"(HloModule p, num_partitions=$4
ENTRY e { dy = f32[$0] parameter(0), sharding={devices=[$2,$3]<=[$4] last_tile_dim_replicate}
  x = f32[$0,$1] parameter(1), sharding={devices=[$2,$3]<=[$4]}
  w = f32[$1] parameter(2), sharding={devices=[$3,$2]<=[$2,$3]T(1,0) last_tile_dim_replicate}
  s = f32[] parameter(3)
  ROOT y = (f32[$0,$1], f32[$1], f32[]) custom-call(dy, x, w, s), custom_call_target="bwd",
    api_version=API_VERSION_TYPED_FFI, sharding={{devices=[$2,$3]<=[$4]}, {replicated}, {replicated}}
})",
        b, k, n, m, n * m);
    TextOptions options;
    options.targets = &targets_;
    options.handlers = &handlers_;
    return WhyNotEqual(text, options);
  }
  TargetRegistry targets_;
  HandlerRegistry handlers_;
};

using ::testing::HasSubstr;

TEST_F(VjpPadding, EvenAndUnevenSizesGiveWhatOneDeviceGives) {
  Register({{"k", 0}}, {{"b", 0}});
  EXPECT_THAT(targets_.Find("bwd", "")->text.pad,
              testing::UnorderedElementsAre(testing::Pair("b", 0), testing::Pair("k", 0)));
  for (const auto& [n, m] : {std::pair(4, 1), std::pair(1, 4), std::pair(2, 2), std::pair(3, 2)}) {
    for (int64_t b : {1, 3, 4, 5, 8, 9}) {
      for (int64_t k : {1, 4, 5, 7, 8}) {
        // With w = 0 and x = 0 both kinds of padding add nothing.
        EXPECT_EQ(Why(b, k, n, m), "") << b << " " << k << " over " << n << " " << m;
      }
    }
  }
}

TEST_F(VjpPadding, WithoutAPadUnevenSizesAreRefused) {
  Register({{"k", 0}}, {});
  EXPECT_EQ(Why(8, 6, 2, 2), "");
  EXPECT_EQ(Why(8, 5, 2, 2), "");
  EXPECT_THAT(Why(7, 6, 2, 2),
              testing::AllOf(HasSubstr("E150 factor b = 7 over 2"),
                             HasSubstr("Fix: Declare \"pad\": {\"b\": 0} in the \"vjp\" of target "
                                       "\"fwd\"")));
  Register({}, {{"b", 0}});
  EXPECT_EQ(Why(7, 6, 2, 2), "");
  EXPECT_THAT(Why(7, 5, 2, 2), HasSubstr("E150 factor k = 5 over 2"));
}

// The checker tries the rule of the VJP's target by itself, and still names the VJP.
TEST_F(VjpPadding, TheCheckerSaysWhereThePadIsDeclaredToo) {
  Register({{"k", 0}}, {});
  const auto check = CheckTarget({.target = "bwd"}, targets_, handlers_);
  ASSERT_TRUE(check.ok()) << check.status();
  EXPECT_THAT(check->untested,
              testing::ElementsAre(testing::AllOf(
                  HasSubstr("b, uneven sizes: E150"),
                  HasSubstr("Fix: Declare \"pad\": {\"b\": 0} in the \"vjp\" of target \"fwd\""),
                  HasSubstr("(rule of target \"bwd\", VJP of fwd)"))));
  Register({{"k", 0}}, {{"b", 0}});
  const auto padded = CheckTarget({.target = "bwd"}, targets_, handlers_);
  ASSERT_TRUE(padded.ok()) << padded.status();
  EXPECT_THAT(padded->untested, testing::IsEmpty());
}

// Leading dimensions have no name in the rule, so that neither has the factor of the trial.
TEST_F(VjpPadding, TheCheckerNamesLeadingDimensionsAsTheVjpDoes) {
  TargetRegistry targets;
  ASSERT_TRUE(targets.RegisterRule("scale", {.rule = "... d, d -> ... d"}).ok());
  ASSERT_TRUE(
      targets
          .RegisterVjp("scale", {.target = "scale_bwd",
                                 .arguments = {VjpArgument::Cotangent(0), VjpArgument::Operand(0),
                                               VjpArgument::Operand(1)},
                                 .gradients = {0, 1},
                                 .backend_config = std::nullopt})
          .ok());
  HandlerRegistry handlers;
  HandlerEntry entry;
  entry.target = "scale_bwd";
  entry.host = [](const HandlerContext&, absl::Span<const BufferView> in,
                  absl::Span<const BufferView> out) {
    const int64_t d = in[2].num_elements();
    const auto f = [](const BufferView& v) { return static_cast<float*>(v.data); };
    std::fill_n(f(out[1]), d, 0.0f);
    for (int64_t k = 0; k < in[0].num_elements(); ++k) {
      f(out[0])[k] = f(in[0])[k] * f(in[2])[k % d];
      f(out[1])[k % d] += f(in[0])[k] * f(in[1])[k];
    }
    return absl::OkStatus();
  };
  ASSERT_TRUE(handlers.Register(std::move(entry)).ok());
  const auto program = ParseModule(
      std::make_shared<const std::string>(
          "HloModule m\n\nENTRY e {\n  dy = f32[6,4] parameter(0)\n  x = f32[6,4] parameter(1)\n"
          "  w = f32[4] parameter(2)\n  ROOT t = (f32[6,4], f32[4]) custom-call(dy, x, w), "
          "custom_call_target=\"scale_bwd\", api_version=API_VERSION_TYPED_FFI\n}\n"),
      std::make_shared<Context>(), "test.hlo");
  ASSERT_TRUE(program.ok()) << program.status();
  const auto check = CheckTarget({.target = "scale_bwd", .program = &*program}, targets, handlers);
  ASSERT_TRUE(check.ok()) << check.status();
  EXPECT_THAT(check->untested,
              testing::Contains(HasSubstr("Declare \"pad\": {\"...\": 0} in the \"vjp\" of target "
                                          "\"scale\"")))
      << RuleCheckJson(*check);
}

TEST_F(VjpPadding, ARulesPadOtherThanZeroIsTheVjpsWhereNoCotangentIsCut) {
  Register({{"k", 1}}, {{"b", 0}});  // x = 1
  EXPECT_THAT(targets_.Find("bwd", "")->text.pad, testing::Contains(testing::Pair("k", 1)));
  for (int64_t k : {1, 3, 4, 5, 7}) EXPECT_EQ(Why(6, k, 1, 4), "") << k;
  // Of a factor that cotangents have, only 0 follows.
  TargetRegistry rows;
  ASSERT_TRUE(rows.RegisterRule("fwd", {.rule = "b k, k, -> b",
                                        .reduction = {{"k", PartialOp::kSum}},
                                        .pad = {{"b", 1}, {"k", 0}}})
                  .ok());
  ASSERT_TRUE(rows.RegisterVjp("fwd", Backward({})).ok());
  EXPECT_THAT(rows.Find("bwd", "")->text.pad, testing::ElementsAre(testing::Pair("k", 0)));
}

TEST_F(VjpPadding, LeadingDimensionsArePaddedTogether) {
  TargetRegistry t;
  ASSERT_TRUE(
      t.RegisterRule("norm", {.rule = "... d, d -> ... d", .need_replication = {"d"}}).ok());
  const VjpSpec vjp{
      .target = "norm_bwd",
      .arguments = {VjpArgument::Cotangent(0), VjpArgument::Operand(0), VjpArgument::Operand(1)},
      .gradients = {0, 1},
      .backend_config = std::nullopt,
      .pad = {{"...", 0}}};
  ASSERT_TRUE(t.RegisterVjp("norm", vjp).ok());
  for (const RuleAlternative& a : t.Find("norm_bwd", "")->alternatives) {
    EXPECT_EQ(a.text.pad.size(), a.text.reduction.size()) << a.text.rule;
  }
  VjpSpec wrong = vjp;
  wrong.pad = {{"z", 0}};
  TargetRegistry other;
  ASSERT_TRUE(other.RegisterRule("norm", {.rule = "... d, d -> ... d"}).ok());
  EXPECT_THAT(other.RegisterVjp("norm", wrong), Fails("E116", "factor z"));
}

}  // namespace
}  // namespace shardcall
