// SPDX-License-Identifier: Apache-2.0
// check-rule of a target with a reference and a handler that is no sum of parts.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "shardcall/partitioner/check/check_target.h"
#include "shardcall/partitioner/check/reference.h"

namespace shardcall {
namespace {

using ::testing::HasSubstr;

// The mean of each row, by a handler that divides by as many columns as it is given.
absl::Status RowMeans(const HandlerContext&, absl::Span<const BufferView> in,
                      absl::Span<const BufferView> out) {
  const float* x = static_cast<const float*>(in[0].data);
  const int64_t columns = in[0].dims[1];
  for (int64_t i = 0; i < in[0].dims[0]; ++i) {
    float sum = 0;
    for (int64_t k = 0; k < columns; ++k) sum += x[i * columns + k];
    static_cast<float*>(out[0].data)[i] = sum / static_cast<float>(columns);
  }
  return absl::OkStatus();
}

// `size`: an f32[] %n, what the sum of a row of x, f32[6,8], is divided by.
RuleCheck CheckRowMeans(const std::string& size) {
  const std::string text = std::string(R"(HloModule mean
add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }
ENTRY main {
  x = f32[6,8] parameter(0)
  zero = f32[] constant(0)
)") + size + R"(
  ns = f32[6] broadcast(n), dimensions={}
  sum = f32[6] reduce(x, zero), dimensions={1}, to_apply=add
  ROOT y = f32[6] divide(sum, ns)
}
)";
  TargetRegistry targets;
  HandlerRegistry handlers;
  EXPECT_TRUE(RegisterPartitionLike("mean", text, &targets).ok());
  EXPECT_TRUE(handlers.Register({.target = "mean", .host = RowMeans}).ok());
  const auto check = CheckTarget({.target = "mean"}, targets, handlers);
  EXPECT_TRUE(check.ok()) << check.status();
  return check.ok() ? *check : RuleCheck();
}

TEST(PartitionLike, AMeanOverWhateverSizeKeepsItsDimensionWhole) {
  const RuleCheck check =
      CheckRowMeans("  d = s32[] get-dimension-size(x), dimensions={1}\n  n = f32[] convert(d)\n");
  EXPECT_EQ(check.verdict, RuleVerdict::kHolds) << RuleCheckJson(check);
  EXPECT_THAT(check.findings, testing::IsEmpty());
}

// The rule is that of a sum, which the handler's is not; but it is the reference that
// says so, by its constant, so that is what is to be changed.
TEST(PartitionLike, ASizeWrittenAsAConstantIsTheReferencesFault) {
  const RuleCheck check = CheckRowMeans("  n = f32[] constant(8)\n");
  EXPECT_EQ(check.verdict, RuleVerdict::kIncorrect);
  ASSERT_THAT(check.findings, testing::SizeIs(1)) << RuleCheckJson(check);
  EXPECT_EQ(check.findings[0].factor, "j");
  EXPECT_THAT(check.findings[0].message,
              testing::AllOf(HasSubstr("agree on (f32[6,8]) -> f32[6]"),
                             HasSubstr("disagree with j = 3: result 0 differs"),
                             HasSubstr("made from the size of j: take it by get-dimension-size")));
  // One that is wrong in the reference's own sizes is wrong by itself.
  const RuleCheck other = CheckRowMeans("  n = f32[] constant(7)\n");
  ASSERT_FALSE(other.findings.empty());
  EXPECT_THAT(other.findings[0].message, HasSubstr("disagree on one device"));
}

}  // namespace
}  // namespace shardcall
