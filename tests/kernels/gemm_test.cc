// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <complex>
#include <limits>

#include "absl/strings/str_cat.h"
#include "tests/kernels/kernel_test_util.h"

namespace shardcall {
namespace {

constexpr ElementType kF32 = ElementType::kF32;
constexpr ElementType kF64 = ElementType::kF64;
constexpr ElementType kBF16 = ElementType::kBF16;

struct Case {
  ElementType type = kF32, result = kF32;
  std::vector<int64_t> batch = {};
  bool ta = false, tb = false, has_c = false;
  double alpha = 1, beta = 0, tolerance = 1e-6;
  int64_t m = 5, n = 9, k = 13;
};

void Check(const Case& c, const std::string& attributes) {
  auto dims = [&c](int64_t rows, int64_t cols) {
    std::vector<int64_t> d = c.batch;
    d.push_back(rows), d.push_back(cols);
    return d;
  };
  const Tensor a = RandomTensor(c.type, c.ta ? dims(c.k, c.m) : dims(c.m, c.k), 1);
  const Tensor b = RandomTensor(c.type, c.tb ? dims(c.n, c.k) : dims(c.k, c.n), 2);
  const Tensor add = RandomTensor(c.result, dims(c.m, c.n), 3);
  std::vector<Tensor> d = {Tensor(c.result, dims(c.m, c.n))}, operands = {a, b};
  if (c.has_c) operands.push_back(add);
  const absl::Status status = CallKernel("cublas_gemm", operands, &d, attributes);
  ASSERT_TRUE(status.ok()) << status << attributes;
  std::vector<double> expected(d[0].size());
  for (int64_t t = 0; t < d[0].size() / (c.m * c.n); ++t) {
    for (int64_t i = 0; i < c.m; ++i) {
      for (int64_t j = 0; j < c.n; ++j) {
        const int64_t at = (t * c.m + i) * c.n + j;
        double sum = 0;
        for (int64_t p = 0; p < c.k; ++p) {
          sum += a.values[t * c.m * c.k + (c.ta ? p * c.m + i : i * c.k + p)] *
                 b.values[t * c.k * c.n + (c.tb ? j * c.k + p : p * c.n + j)];
        }
        expected[at] = c.alpha * sum + (c.has_c ? c.beta * add.values[at] : 0);
      }
    }
  }
  ExpectNear(d[0], expected, c.tolerance, attributes);
}

TEST(CublasGemm, AllTransposesInBothSpellings) {
  for (bool ta : {false, true}) {
    for (bool tb : {false, true}) {
      for (const char* yes : {"\"T\"", "\"C\"", "true"}) {
        const char* no = yes[0] == 't' ? "false" : "\"N\"";
        Case c;
        c.ta = ta, c.tb = tb;
        Check(c, absl::StrCat("{transa = ", ta ? yes : no, ", transb = ", tb ? yes : no, "}"));
      }
    }
  }
}

TEST(CublasGemm, WithoutAttributesItIsAPlainProductPlusC) {
  Check({}, "");
  Check({.has_c = true, .beta = 1}, "");
}

TEST(CublasGemm, AlphaAndBetaScale) {
  Check({.has_c = true, .alpha = 0.5, .beta = -2}, "{alpha = 0.5 : f32, beta = -2.0 : f32}");
  Check({.type = kF64, .result = kF64, .alpha = 0.25, .tolerance = 1e-14}, "{alpha = 0.25 : f64}");
}

TEST(CublasGemm, LeadingDimensionsAreABatch) {
  Check({.batch = {2, 3}, .ta = true, .has_c = true, .beta = 1}, "{transa = \"T\"}");
  Check({.batch = {0}}, "");
  Check({.batch = {4}, .k = 0}, "");
}

TEST(CublasGemm, NarrowTypesAreSummedInF32) {
  Check({.type = kBF16, .result = kBF16, .tolerance = 5e-3}, "");
  Check({.type = kBF16, .result = kF32}, "");
  Check({.type = ElementType::kF16, .result = kF32, .has_c = true, .beta = 1}, "");
}

TEST(CublasGemm, WithBetaZeroNansOfCDoNotCount) {
  Tensor nan(kF32, {2, 2}), one(kF32, {2, 2});
  nan.values.assign(4, std::nan(""));
  one.values.assign(4, 1);
  std::vector<Tensor> d = {one};
  ASSERT_TRUE(CallKernel("cublas_gemm", {one, one, nan}, &d, "{beta = 0.0 : f32}").ok());
  EXPECT_EQ(d[0].values, std::vector<double>(4, 2));
}

TEST(CublasGemm, AnAdjointConjugatesComplexNumbers) {
  HandlerRegistry registry;
  ASSERT_TRUE(RegisterBuiltinHandlers(registry).ok());
  const auto map = AttributeMapView::Parse("{transa = \"C\"}");
  std::complex<float> a(1, 2), b(3, 4), d;
  HandlerContext context;
  context.target = "cublas_gemm";
  context.attributes = &*map;
  const std::vector<BufferView> in = {{ElementType::kC64, {1, 1}, &a},
                                      {ElementType::kC64, {1, 1}, &b}};
  const std::vector<BufferView> out = {{ElementType::kC64, {1, 1}, &d}};
  ASSERT_TRUE((*registry.Find("cublas_gemm", "Host"))->host(context, in, out).ok());
  EXPECT_EQ(d, std::complex<float>(11, -2));
}

TEST(CublasGemm, BadCallsNameTargetOperandExpectedAndFound) {
  const Tensor a(kF32, {2, 3}), b(kF32, {3, 4}), d(kF32, {2, 4});
  auto call = [&](std::vector<Tensor> in, Tensor result, const char* attributes = "") {
    std::vector<Tensor> out = {result};
    return CallKernel("cublas_gemm", in, &out, attributes);
  };
  EXPECT_TRUE(call({a, b}, d).ok());
  ExpectError(call({a}, d), "E132", {"cublas_gemm", "2 to 3 (a, b, c)"});
  ExpectError(call({a, b, d, d}, d), "E132", {"2 to 3 (a, b, c)"});
  ExpectError(call({a, a}, d), "E133", {"operand 1 (b)", "expected f32[3,3]", "found f32[2,3]"});
  ExpectError(call({a, b}, a), "E133", {"result 0 (d)", "expected f32[2,4]"});
  ExpectError(call({a, b, a}, d), "E133", {"operand 2 (c)", "expected f32[2,4]"});
  ExpectError(call({Tensor(kF32, {3}), b}, d), "E133", {"operand 0 (a)", "rank 2 or more"});
  ExpectError(call({a, Tensor(kF32, {1, 3, 4})}, d), "E133", {"operand 1 (b)", "rank 2"});
  ExpectError(call({a, Tensor(kBF16, {3, 4})}, d), "E134", {"operand 1 (b)", "expected f32"});
  ExpectError(call({a, b}, Tensor(kF64, {2, 4})), "E134", {"result 0 (d)"});
  ExpectError(call({a, b}, d, "{transa = \"X\"}"), "E131", {"transa", "\"X\""});
  ExpectError(call({a, b}, d, "{transa = 1 : i32}"), "E131", {"transa"});
  ExpectError(call({a, b}, d, "{beta = 1.0 : f32}"), "E131", {"beta", "no operand c"});
  ExpectError(call({a, b}, d, "{trans_a = \"T\"}"), "E131", {"trans_a", "Write transa"});
}

TEST(CustomRelu, NegativesBecomeZeroAndNanStaysInEveryType) {
  for (ElementType type : {kF32, kF64, kBF16, ElementType::kF16}) {
    Tensor x(type, {2, 3});
    x.values = {-1, 2, -HUGE_VAL, HUGE_VAL, -0.0, std::nan("")};
    std::vector<Tensor> y = {Tensor(type, {2, 3})};
    ASSERT_TRUE(CallKernel("custom_relu", {x}, &y).ok());
    for (int i = 0; i < 5; ++i) {
      EXPECT_EQ(y[0].values[i], std::max(x.values[i], 0.0));
      EXPECT_FALSE(std::signbit(y[0].values[i]));
    }
    EXPECT_TRUE(std::isnan(y[0].values[5]));
  }
}

TEST(CustomRelu, IntegersToo) {
  HandlerRegistry registry;
  ASSERT_TRUE(RegisterBuiltinHandlers(registry).ok());
  int64_t x[] = {INT64_MIN, -1, 0, INT64_MAX}, y[4] = {};
  HandlerContext context;
  context.target = "custom_relu";
  const HostHandler& relu = (*registry.Find("custom_relu", "Host"))->host;
  ASSERT_TRUE(relu(context, {{ElementType::kS64, {4}, x}}, {{ElementType::kS64, {4}, y}}).ok());
  EXPECT_THAT(y, testing::ElementsAre(0, 0, 0, INT64_MAX));
}

TEST(CustomRelu, BadCallsAreErrors) {
  std::vector<Tensor> y = {Tensor(kF32, {3})};
  ExpectError(CallKernel("custom_relu", {}, &y), "E132", {"custom_relu", "1 (x)"});
  ExpectError(CallKernel("custom_relu", {Tensor(kF32, {4})}, &y), "E133",
              {"result 0 (y)", "f32[4]"});
  ExpectError(CallKernel("custom_relu", {Tensor(kF64, {3})}, &y), "E134", {"result 0 (y)"});
  ExpectError(CallKernel("custom_relu", {Tensor(kF32, {3})}, &y, "{slope = 0.1 : f32}"), "E131",
              {"no attributes"});
}

TEST(CustomReluBwd, PassesWhatTheOperandLetThrough) {
  const double nan = std::nan(""), inf = std::numeric_limits<double>::infinity();
  for (ElementType type : {kF32, kF64, ElementType::kBF16, ElementType::kF16}) {
    Tensor dy(type, {7}), x(type, {7});
    dy.values = {1, 2, 3, 4, 5, 6, 7};
    x.values = {-1, -0.0, 0.0, 0.25, inf, -inf, nan};
    std::vector<Tensor> dx = {Tensor(type, {7})};
    ASSERT_TRUE(CallKernel("custom_relu_bwd", {dy, x}, &dx).ok());
    EXPECT_EQ(dx[0].values, (std::vector<double>{0, 0, 0, 4, 5, 0, 0})) << ElementTypeName(type);
  }
  std::vector<Tensor> dx = {Tensor(kF32, {3})};
  const Tensor three(kF32, {3});
  ExpectError(CallKernel("custom_relu_bwd", {three}, &dx), "E132", {});
  ExpectError(CallKernel("custom_relu_bwd", {three, Tensor(kF32, {4})}, &dx), "E133", {"x"});
  ExpectError(CallKernel("custom_relu_bwd", {three, Tensor(kF64, {3})}, &dx), "E134", {"x"});
}

TEST(GemmBwd, BadCallsAreRefused) {
  const Tensor dd(kF32, {3, 5}), a(kF32, {3, 4}), b(kF32, {4, 5});
  std::vector<Tensor> out = {a, b};
  ASSERT_TRUE(CallKernel("gemm_bwd", {dd, a, b}, &out).ok());
  ExpectError(CallKernel("gemm_bwd", {dd, b, a}, &out), "E133", {});
  ExpectError(CallKernel("gemm_bwd", {dd, a, b}, &out, "{beta = 2.0 : f32}"), "E131", {"beta"});
  out = {a, b, dd};
  ASSERT_TRUE(CallKernel("gemm_bwd", {dd, a, b}, &out, "{beta = 2.0 : f32}").ok());
  out = {b, a};
  ExpectError(CallKernel("gemm_bwd", {dd, a, b}, &out), "E133", {"da"});
  out = {a};
  ExpectError(CallKernel("gemm_bwd", {dd, a, b}, &out), "E132", {});
  const Tensor c(ElementType::kS32, {3, 3});
  out = {c, c};
  ExpectError(CallKernel("gemm_bwd", {c, c, c}, &out), "E134", {"a"});
}

}  // namespace
}  // namespace shardcall
