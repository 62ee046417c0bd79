// SPDX-License-Identifier: Apache-2.0
#include "tests/kernels/kernel_test_util.h"

namespace shardcall {
namespace {

constexpr ElementType kF32 = ElementType::kF32;
constexpr ElementType kF64 = ElementType::kF64;
constexpr ElementType kBF16 = ElementType::kBF16;
constexpr ElementType kS32 = ElementType::kS32;
constexpr ElementType kS64 = ElementType::kS64;

// The mathematics in f64, straight from the definition: no maximum is taken off.
struct Reference {
  std::vector<double> loss, lse, gradient;

  Reference(const Tensor& logits, const Tensor& labels, const std::vector<double>& dloss) {
    const int64_t v = logits.dims.back(), rows = labels.size();
    gradient.resize(logits.size());
    for (int64_t r = 0; r < rows; ++r) {
      double sum = 0;
      for (int64_t i = 0; i < v; ++i) sum += std::exp(logits.values[r * v + i]);
      lse.push_back(std::log(sum));
      double picked = 0;
      for (int64_t i = 0; i < v; ++i) {
        const double one = labels.values[r] == static_cast<double>(i) ? 1 : 0;
        picked += one * logits.values[r * v + i];
        gradient[r * v + i] = dloss[r] * (std::exp(logits.values[r * v + i]) / sum - one);
      }
      loss.push_back(lse[r] - picked);
    }
  }
};

struct Case {
  ElementType type, label_type;
  std::vector<int64_t> dims;
  double tolerance;
};
void PrintTo(const Case& c, std::ostream* out) { *out << ElementTypeName(c.type); }

class SoftmaxCrossEntropyTest : public testing::TestWithParam<Case> {};

TEST_P(SoftmaxCrossEntropyTest, LossAndGradientAreThoseOfTheF64Reference) {
  const Case& c = GetParam();
  const std::vector<int64_t> row_dims(c.dims.begin(), c.dims.end() - 1);
  const ElementType row_type = c.type == kF64 ? kF64 : kF32;
  const int v = static_cast<int>(c.dims.back());
  const Tensor logits = RandomTensor(c.type, c.dims, 1, 3);
  const Tensor labels = RandomIntegers(c.label_type, row_dims, 2, -1, v);  // two are no column
  const Tensor dloss = RandomTensor(row_type, row_dims, 3);
  const Reference reference(logits, labels, dloss.values);

  std::vector<Tensor> forward = {Tensor(row_type, row_dims), Tensor(row_type, row_dims)};
  absl::Status status = CallKernel("softmax_cross_entropy", {logits, labels}, &forward);
  ASSERT_TRUE(status.ok()) << status;
  ExpectNear(forward[0], reference.loss, 1e-6, "loss");
  ExpectNear(forward[1], reference.lse, 1e-6, "lse");
  std::vector<Tensor> loss_alone = {Tensor(row_type, row_dims)};
  ASSERT_TRUE(CallKernel("softmax_cross_entropy", {logits, labels}, &loss_alone).ok());
  EXPECT_EQ(loss_alone[0].values, forward[0].values);

  std::vector<Tensor> backward = {Tensor(c.type, c.dims)};
  status = CallKernel("softmax_cross_entropy_bwd", {dloss, logits, labels, forward[1]}, &backward);
  ASSERT_TRUE(status.ok()) << status;
  ExpectNear(backward[0], reference.gradient, c.tolerance, "dlogits");
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, SoftmaxCrossEntropyTest,
    testing::Values(Case{kF32, kS32, {7, 33}, 1e-6}, Case{kF32, kS64, {2, 3, 128}, 1e-6},
                    Case{kF32, kS32, {5}, 1e-6}, Case{kF32, kS32, {4, 1}, 1e-6},
                    Case{kF64, kS32, {3, 17}, 1e-12}, Case{kBF16, kS32, {6, 40}, 1e-2},
                    Case{ElementType::kF16, kS64, {6, 40}, 2e-3}));

TEST(SoftmaxCrossEntropy, TheReferencesGradientIsThatOfFiniteDifferences) {
  Tensor logits = RandomTensor(kF64, {3, 5}, 1);
  const Tensor labels = RandomIntegers(kS32, {3}, 2, 0, 4);
  const std::vector<double> dloss = {1, -2, 0.5};
  auto total = [&] {
    const Reference at(logits, labels, dloss);
    double sum = 0;
    for (size_t r = 0; r < dloss.size(); ++r) sum += at.loss[r] * dloss[r];
    return sum;
  };
  const Reference reference(logits, labels, dloss);
  ExpectSlopes(reference.gradient, FiniteDifferences(&logits.values, total, 15), "dlogits");
}

Tensor Row(std::vector<double> values) {
  Tensor t(kF32, {1, static_cast<int64_t>(values.size())});
  t.values = std::move(values);
  return t;
}
Tensor Label(double label) {
  Tensor t(kS32, {1});
  t.values = {label};
  return t;
}

TEST(SoftmaxCrossEntropy, LargeLogitsDoNotOverflow) {
  std::vector<Tensor> out = {Tensor(kF32, {1}), Tensor(kF32, {1})};
  ASSERT_TRUE(CallKernel("softmax_cross_entropy", {Row({3e38, -3e38, 0}), Label(1)}, &out).ok());
  EXPECT_EQ(out[0].values[0], INFINITY);  // 6e38 is beyond f32
  EXPECT_EQ(out[1].values[0], static_cast<double>(3e38f));
  ASSERT_TRUE(CallKernel("softmax_cross_entropy", {Row({1000, 999}), Label(0)}, &out).ok());
  EXPECT_NEAR(out[0].values[0], std::log(1 + std::exp(-1)), 1e-4);
}

TEST(SoftmaxCrossEntropy, InfinitiesAndNaN) {
  const double inf = INFINITY, nan = NAN;
  std::vector<Tensor> out = {Tensor(kF32, {1}), Tensor(kF32, {1})};
  ASSERT_TRUE(CallKernel("softmax_cross_entropy", {Row({-inf, 2, -inf}), Label(1)}, &out).ok());
  EXPECT_EQ(out[0].values[0], 0);
  ASSERT_TRUE(CallKernel("softmax_cross_entropy", {Row({-inf, -inf}), Label(-1)}, &out).ok());
  EXPECT_EQ(out[1].values[0], -inf);
  for (const Tensor& row : {Row({1, nan, 2}), Row({nan, 1, 2}), Row({inf, 1, 2})}) {
    ASSERT_TRUE(CallKernel("softmax_cross_entropy", {row, Label(0)}, &out).ok());
    EXPECT_TRUE(std::isnan(out[1].values[0]));
  }
}

TEST(SoftmaxCrossEntropy, PartsOfTheVocabularyMakeTheLoss) {
  const Tensor logits = RandomTensor(kF64, {4, 10}, 5, 4);
  Tensor labels = RandomIntegers(kS32, {4}, 6, 0, 9);
  const Reference reference(logits, labels, std::vector<double>(4, 1));
  std::vector<double> most(4, -INFINITY), sum(4, 0), picked(4, 0);
  for (int64_t first : {0, 3, 9}) {
    const int64_t width = first == 0 ? 3 : first == 3 ? 6 : 1;
    Tensor part(kF64, {4, width}), local = labels;
    for (int64_t r = 0; r < 4; ++r) {
      for (int64_t i = 0; i < width; ++i) {
        part.values[r * width + i] = logits.values[r * 10 + first + i];
      }
      local.values[r] -= static_cast<double>(first);
    }
    std::vector<Tensor> out(3, Tensor(kF64, {4}));
    ASSERT_TRUE(CallKernel("softmax_cross_entropy_shard", {part, local}, &out).ok());
    for (int64_t r = 0; r < 4; ++r) {
      const double m = std::max(most[r], out[0].values[r]);
      sum[r] = sum[r] * std::exp(most[r] - m) + out[1].values[r] * std::exp(out[0].values[r] - m);
      most[r] = m;
      picked[r] += out[2].values[r];
    }
  }
  for (int64_t r = 0; r < 4; ++r) {
    EXPECT_NEAR(most[r] + std::log(sum[r]) - picked[r], reference.loss[r], 1e-12);
  }
}

TEST(SoftmaxCrossEntropy, APartWithoutWeightIsZeroAndNotNaN) {
  std::vector<Tensor> out(3, Tensor(kF32, {1}));
  ASSERT_TRUE(
      CallKernel("softmax_cross_entropy_shard", {Row({-INFINITY, -INFINITY}), Label(7)}, &out)
          .ok());
  EXPECT_EQ(out[0].values[0], -INFINITY);
  EXPECT_EQ(out[1].values[0], 0);
  EXPECT_EQ(out[2].values[0], 0);
}

TEST(SoftmaxCrossEntropy, RowsStandAlone) {
  const Tensor logits = RandomTensor(kF32, {6, 19}, 1);
  const Tensor labels = RandomIntegers(kS32, {6}, 2, 0, 18);
  std::vector<Tensor> whole = {Tensor(kF32, {6})};
  ASSERT_TRUE(CallKernel("softmax_cross_entropy", {logits, labels}, &whole).ok());
  Tensor part(kF32, {2, 19}), part_labels(kS32, {2});
  std::copy_n(logits.values.begin() + 3 * 19, 2 * 19, part.values.begin());
  std::copy_n(labels.values.begin() + 3, 2, part_labels.values.begin());
  std::vector<Tensor> out = {Tensor(kF32, {2})};
  ASSERT_TRUE(CallKernel("softmax_cross_entropy", {part, part_labels}, &out).ok());
  EXPECT_EQ(out[0].values[0], whole[0].values[3]);
  EXPECT_EQ(out[0].values[1], whole[0].values[4]);
}

TEST(SoftmaxCrossEntropy, BadCallsAreRefused) {
  const Tensor x(kF32, {2, 3}), labels(kS32, {2}), row(kF32, {2});
  std::vector<Tensor> out = {row};
  auto call = [&](std::vector<Tensor> in, absl::string_view attributes = "") {
    return CallKernel("softmax_cross_entropy", in, &out, attributes);
  };
  ExpectError(call({x}), "E132", {"softmax_cross_entropy"});
  ExpectError(call({x, row}), "E134", {"labels", "s32"});
  ExpectError(call({Tensor(kS32, {2, 3}), labels}), "E134", {"logits"});
  ExpectError(call({x, Tensor(kS32, {3})}), "E133", {"labels", "[2]"});
  ExpectError(call({Tensor(kF32, {}), labels}), "E133", {"logits"});
  ExpectError(call({x, labels}, "{eps = 1.0 : f32}"), "E131", {"eps"});
  out = {Tensor(kF32, {3})};
  ExpectError(call({x, labels}), "E133", {"loss"});
  out = {Tensor(kBF16, {2})};
  ExpectError(call({x, labels}), "E134", {"loss"});
  out = {Tensor(kF32, {2, 4})};
  ExpectError(CallKernel("softmax_cross_entropy_bwd", {row, x, labels, row}, &out), "E133",
              {"dlogits"});
  out = {row, row};
  ExpectError(CallKernel("softmax_cross_entropy_shard", {x, labels}, &out), "E132", {});
}

}  // namespace
}  // namespace shardcall
