// SPDX-License-Identifier: Apache-2.0
#include "tests/kernels/kernel_test_util.h"

namespace shardcall {
namespace {

constexpr ElementType kF32 = ElementType::kF32;
constexpr ElementType kF64 = ElementType::kF64;
constexpr ElementType kBF16 = ElementType::kBF16;

// The mathematics in f64: y = x rstd gain, and for a loss sum(y dy) its gradients.
struct Reference {
  std::vector<double> y, rstd, dx, dgain;

  Reference(const Tensor& x, const Tensor& gain, const Tensor& dy, double eps) {
    const int64_t d = x.dims.back(), rows = x.size() / d, gains = gain.size() / d;
    y.resize(x.size()), rstd.resize(rows), dx.resize(x.size()), dgain.resize(gain.size());
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t g = r / (rows / gains) * d;
      double square = 0, mean = 0;
      for (int64_t i = 0; i < d; ++i) square += x.values[r * d + i] * x.values[r * d + i];
      rstd[r] = 1 / std::sqrt(square / d + eps);
      for (int64_t i = 0; i < d; ++i) {
        const double n = x.values[r * d + i] * rstd[r];
        y[r * d + i] = n * gain.values[g + i];
        dgain[g + i] += dy.values[r * d + i] * n;
        mean += dy.values[r * d + i] * gain.values[g + i] * n / d;
      }
      for (int64_t i = 0; i < d; ++i) {
        dx[r * d + i] = rstd[r] * (dy.values[r * d + i] * gain.values[g + i] -
                                   x.values[r * d + i] * rstd[r] * mean);
      }
    }
  }
};

struct Case {
  ElementType type;
  std::vector<int64_t> dims;
  int gain_lead = 0;  // leading dimensions of gain that are x's
  double tolerance;
};
void PrintTo(const Case& c, std::ostream* out) { *out << Tensor(c.type, c.dims).size(); }

class RmsNormTest : public testing::TestWithParam<Case> {};

TEST_P(RmsNormTest, ForwardAndBackwardAreThoseOfTheF64Reference) {
  const Case& c = GetParam();
  std::vector<int64_t> gain_dims(c.dims.begin(), c.dims.begin() + c.gain_lead);
  gain_dims.push_back(c.dims.back());
  const std::vector<int64_t> row_dims(c.dims.begin(), c.dims.end() - 1);
  const Tensor x = RandomTensor(c.type, c.dims, 1), dy = RandomTensor(c.type, c.dims, 2);
  const Tensor gain = RandomTensor(c.type, gain_dims, 3);
  const Reference reference(x, gain, dy, 1e-5f);

  std::vector<Tensor> forward = {Tensor(c.type, c.dims), Tensor(kF32, row_dims)};
  absl::Status status = CallKernel("rms_norm", {x, gain}, &forward, "{eps = 9.99999974E-6 : f32}");
  ASSERT_TRUE(status.ok()) << status;
  ExpectNear(forward[0], reference.y, c.tolerance, "y");
  ExpectNear(forward[1], reference.rstd, 1e-6, "rstd");

  std::vector<Tensor> backward = {Tensor(c.type, c.dims), Tensor(c.type, gain_dims)};
  status = CallKernel("rms_norm_bwd", {dy, x, gain, forward[1]}, &backward, "{}");
  ASSERT_TRUE(status.ok()) << status;
  ExpectNear(backward[0], reference.dx, c.tolerance, "dx", c.dims.back() == 1 ? 1 : 0);
  ExpectNear(backward[1], reference.dgain, c.tolerance, "dgain");
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, RmsNormTest,
    testing::Values(Case{kF32, {4, 8, 16}, 0, 1e-6}, Case{kF32, {3, 5, 17}, 0, 1e-6},
                    Case{kF32, {1}, 0, 1e-6}, Case{kF32, {129}, 0, 1e-6},
                    Case{kF32, {7, 4096}, 0, 1e-6}, Case{kF32, {2000, 3}, 0, 1e-6},
                    Case{kF32, {2, 3, 5, 9}, 1, 1e-6}, Case{kF32, {2, 3, 5, 9}, 2, 1e-6},
                    Case{kF64, {3, 33}, 0, 1e-6}, Case{kBF16, {4, 8, 16}, 0, 1e-2},
                    Case{ElementType::kF16, {4, 8, 17}, 0, 2e-3}));

TEST(RmsNorm, TheReferencesGradientsAreThoseOfFiniteDifferences) {
  Tensor x = RandomTensor(kF64, {3, 7}, 1), gain = RandomTensor(kF64, {7}, 2);
  const Tensor dy = RandomTensor(kF64, {3, 7}, 3);
  const Reference reference(x, gain, dy, 1e-5);
  auto loss = [&] {
    const Reference at(x, gain, dy, 1e-5);
    double sum = 0;
    for (size_t i = 0; i < at.y.size(); ++i) sum += at.y[i] * dy.values[i];
    return sum;
  };
  ExpectSlopes(reference.dx, FiniteDifferences(&x.values, loss, 21), "dx");
  ExpectSlopes(reference.dgain, FiniteDifferences(&gain.values, loss, 7), "dgain");
}

TEST(RmsNorm, RowsHaveTheSameBitsWhateverElseTheBufferHolds) {
  const Tensor x = RandomTensor(kF32, {6, 37}, 1), gain = RandomTensor(kF32, {37}, 2);
  std::vector<Tensor> whole = {Tensor(kF32, {6, 37}), Tensor(kF32, {6})};
  ASSERT_TRUE(CallKernel("rms_norm", {x, gain}, &whole).ok());
  for (int r = 0; r < 6; ++r) {
    Tensor row(kF32, {1, 37});
    std::copy_n(x.values.begin() + r * 37, 37, row.values.begin());
    std::vector<Tensor> one = {Tensor(kF32, {1, 37}), Tensor(kF32, {1})};
    ASSERT_TRUE(CallKernel("rms_norm", {row, gain}, &one).ok());
    EXPECT_TRUE(
        std::equal(one[0].values.begin(), one[0].values.end(), whole[0].values.begin() + r * 37));
    EXPECT_EQ(one[1].values[0], whole[1].values[r]);
  }
}

TEST(RmsNorm, RstdMayBeLeftOut) {
  const Tensor x = RandomTensor(kF32, {6, 8}, 1), gain = RandomTensor(kF32, {8}, 2);
  std::vector<Tensor> one = {Tensor(kF32, {6, 8})}, two = {one[0], Tensor(kF32, {6})};
  ASSERT_TRUE(CallKernel("rms_norm", {x, gain}, &one).ok());
  ASSERT_TRUE(CallKernel("rms_norm", {x, gain}, &two).ok());
  EXPECT_EQ(one[0].values, two[0].values);
}

TEST(RmsNorm, NoRowsGiveNothingAndAZeroDgain) {
  const Tensor x(kF32, {0, 8}), gain = RandomTensor(kF32, {8}, 2), rstd(kF32, {0});
  std::vector<Tensor> forward = {x, rstd}, backward = {x, Tensor(kF32, {8})};
  ASSERT_TRUE(CallKernel("rms_norm", {x, gain}, &forward).ok());
  ASSERT_TRUE(CallKernel("rms_norm_bwd", {x, x, gain, rstd}, &backward).ok());
  EXPECT_EQ(backward[1].values, std::vector<double>(8, 0));
}

TEST(RmsNorm, BadCallsNameTargetOperandExpectedAndFound) {
  const Tensor x(kF32, {4, 8}), gain(kF32, {8}), rstd(kF32, {4});
  auto call = [](std::vector<Tensor> in, std::vector<Tensor> out, const char* attributes = "") {
    return CallKernel("rms_norm", in, &out, attributes);
  };
  ExpectError(call({x}, {x, rstd}), "E132", {"rms_norm", "%call.1", "2 (x, gain)", "1 (f32[4,8])"});
  ExpectError(call({x, gain}, {}), "E132", {"wrong number of results", "1 to 2"});
  ExpectError(call({x, gain, gain}, {x}), "E132", {"wrong number of operands"});
  ExpectError(call({x, Tensor(kF32, {7})}, {x}), "E133",
              {"operand 1 (gain)", "f32[8]", "found f32[7]"});
  ExpectError(call({x, Tensor(kF32, {5, 8})}, {x}), "E133", {"operand 1 (gain)"});
  ExpectError(call({x, Tensor(kF32, {})}, {x}), "E133", {"operand 1 (gain)"});
  ExpectError(call({Tensor(kF32, {}), gain}, {x}), "E133", {"operand 0 (x)", "rank 1"});
  ExpectError(call({x, Tensor(kBF16, {8})}, {x}), "E134", {"operand 1 (gain)", "found bf16[8]"});
  ExpectError(call({Tensor(ElementType::kF8E5M2, {4, 8}), gain}, {x}), "E134", {"operand 0 (x)"});
  ExpectError(call({x, gain}, {Tensor(kF32, {8, 4})}), "E133", {"result 0 (y)", "f32[4,8]"});
  ExpectError(call({x, gain}, {x, Tensor(kF32, {8})}), "E133", {"result 1 (rstd)", "f32[4]"});
  ExpectError(call({x, gain}, {x, Tensor(kBF16, {4})}), "E134", {"result 1 (rstd)"});
  ExpectError(call({x, gain}, {x}, "{epsilon = 1.0 : f32}"), "E131", {"epsilon", "Write eps"});
  ExpectError(call({x, gain}, {x}, "{eps = 1 : i32}"), "E131", {"rms_norm", "%call.1", "a float"});
  ExpectError(call({x, gain}, {x}, "{eps = -1.0 : f32}"), "E131", {"eps", "-1"});

  std::vector<Tensor> out = {x, gain};
  ExpectError(CallKernel("rms_norm_bwd", {x, x, gain}, &out), "E132", {"dy, x, gain, rstd"});
  ExpectError(CallKernel("rms_norm_bwd", {gain, x, gain, rstd}, &out), "E133", {"operand 0 (dy)"});
  ExpectError(CallKernel("rms_norm_bwd", {x, x, gain, gain}, &out), "E133", {"operand 3 (rstd)"});
  ExpectError(CallKernel("rms_norm_bwd", {x, x, gain, rstd}, &out, "{eps = 1.0 : f32}"), "E131",
              {"no attributes"});
}

}  // namespace
}  // namespace shardcall
