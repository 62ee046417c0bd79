// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <numeric>

#include "tests/kernels/kernel_test_util.h"

namespace shardcall {
namespace {

constexpr ElementType kF32 = ElementType::kF32;
constexpr ElementType kS32 = ElementType::kS32;

struct Best {
  std::vector<double> values, indices;
};

// By selection: k times the first of what is left. Without NaN and zeros' signs.
Best Reference(const Tensor& x, int64_t k, bool largest) {
  Best best;
  const int64_t n = x.dims.back();
  for (int64_t l = 0; l < x.size() / n; ++l) {
    std::vector<bool> taken(n);
    for (int64_t i = 0; i < k; ++i) {
      int64_t first = -1;
      for (int64_t j = 0; j < n; ++j) {
        const double v = x.values[l * n + j];
        if (taken[j]) continue;
        if (first < 0 || (largest ? v > x.values[l * n + first] : v < x.values[l * n + first])) {
          first = j;
        }
      }
      taken[first] = true;
      best.values.push_back(x.values[l * n + first]);
      best.indices.push_back(static_cast<double>(first));
    }
  }
  return best;
}

class TopKTest : public testing::TestWithParam<ElementType> {};

TEST_P(TopKTest, ValuesAndIndicesAreThoseOfASelection) {
  int seed = 0;
  for (const auto& [dims, k] : std::vector<std::pair<std::vector<int64_t>, int64_t>>{
           {{7}, 3}, {{4, 9}, 1}, {{2, 3, 16}, 16}, {{5, 1}, 1}, {{3, 40}, 8}}) {
    for (const bool largest : {true, false}) {
      const int low = IsSignedInteger(GetParam()) || IsFloat(GetParam()) ? -6 : 0;
      const Tensor x = RandomIntegers(GetParam(), dims, ++seed, low, 6);  // many ties
      std::vector<int64_t> out_dims = dims;
      out_dims.back() = k;
      std::vector<Tensor> out = {Tensor(GetParam(), out_dims), Tensor(kS32, out_dims)};
      const absl::Status status =
          CallKernel("topk", {x}, &out, largest ? "{}" : "{largest = false}");
      ASSERT_TRUE(status.ok()) << status;
      const Best best = Reference(x, k, largest);
      EXPECT_EQ(out[0].values, best.values);
      EXPECT_EQ(out[1].values, best.indices);
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Types, TopKTest,
                         testing::Values(kF32, ElementType::kF64, ElementType::kBF16,
                                         ElementType::kF16, ElementType::kS8, ElementType::kS32,
                                         ElementType::kS64, ElementType::kU8, ElementType::kU32),
                         [](const auto& info) { return std::string(ElementTypeName(info.param)); });

std::vector<double> Order(std::vector<double> line, bool largest) {
  Tensor x(kF32, {static_cast<int64_t>(line.size())});
  x.values = line;
  std::vector<Tensor> out = {x, Tensor(kS32, x.dims)};
  EXPECT_TRUE(CallKernel("topk", {x}, &out, largest ? "" : "{largest = false}").ok());
  return out[1].values;
}

TEST(TopK, FloatsAreInTotalOrder) {
  const double inf = INFINITY, nan = NAN;
  const std::vector<double> line = {-0.0, nan, inf, 0.0, -std::abs(nan), -inf, -1, 1};
  // -NaN keeps its sign through the conversion to f32.
  ASSERT_TRUE(std::signbit(static_cast<float>(-std::abs(nan))));
  EXPECT_EQ(Order(line, true), (std::vector<double>{1, 2, 7, 3, 0, 6, 5, 4}));
  EXPECT_EQ(Order(line, false), (std::vector<double>{4, 5, 6, 0, 3, 7, 2, 1}));
}

TEST(TopK, EqualElementsStandInTheOrderOfTheLine) {
  EXPECT_EQ(Order({2, 2, 2, 2}, true), (std::vector<double>{0, 1, 2, 3}));
  EXPECT_EQ(Order({2, 2, 2, 2}, false), (std::vector<double>{0, 1, 2, 3}));
}

TEST(TopK, LabelsStandForPositions) {
  Tensor x(kF32, {2, 3}), labels(kS32, {2, 3});
  x.values = {1, 3, 2, 9, 8, 9};
  labels.values = {10, 11, 12, -1, 7, 5};
  std::vector<Tensor> out = {Tensor(kF32, {2, 2}), Tensor(kS32, {2, 2})};
  ASSERT_TRUE(CallKernel("topk", {x, labels}, &out).ok());
  EXPECT_EQ(out[0].values, (std::vector<double>{3, 2, 9, 9}));
  EXPECT_EQ(out[1].values, (std::vector<double>{11, 12, -1, 5}));
}

TEST(TopK, NothingOfNothing) {
  std::vector<Tensor> out = {Tensor(kF32, {3, 0}), Tensor(kS32, {3, 0})};
  EXPECT_TRUE(CallKernel("topk", {Tensor(kF32, {3, 0})}, &out).ok());
  EXPECT_TRUE(CallKernel("topk", {Tensor(kF32, {3, 4})}, &out).ok());
  out = {Tensor(kF32, {0, 2}), Tensor(kS32, {0, 2})};
  EXPECT_TRUE(CallKernel("topk", {Tensor(kF32, {0, 4})}, &out).ok());
}

TEST(TopK, BadCallsAreRefused) {
  const Tensor x(kF32, {2, 3});
  std::vector<Tensor> out = {Tensor(kF32, {2, 2}), Tensor(kS32, {2, 2})};
  ExpectError(CallKernel("topk", {}, &out), "E132", {"topk"});
  ExpectError(CallKernel("topk", {x, Tensor(kS32, {2, 2})}, &out), "E133", {"labels"});
  ExpectError(CallKernel("topk", {x, x}, &out), "E134", {"labels", "s32"});
  ExpectError(CallKernel("topk", {Tensor(kF32, {})}, &out), "E133", {"x"});
  ExpectError(CallKernel("topk", {Tensor(ElementType::kPred, {2, 3})}, &out), "E134", {"x"});
  ExpectError(CallKernel("topk", {x}, &out, "{k = 2 : i64}"), "E131", {"k"});
  ExpectError(CallKernel("topk", {x}, &out, "{largest = 1 : i64}"), "E131", {"largest"});
  out = {Tensor(kF32, {2, 4}), Tensor(kS32, {2, 4})};
  ExpectError(CallKernel("topk", {x}, &out), "E133", {"values", "at most 3"});
  out = {Tensor(kF32, {2, 2}), Tensor(kF32, {2, 2})};
  ExpectError(CallKernel("topk", {x}, &out), "E134", {"indices"});
  out = {Tensor(kF32, {2, 2}), Tensor(kS32, {2, 1})};
  ExpectError(CallKernel("topk", {x}, &out), "E133", {"indices"});
}

}  // namespace
}  // namespace shardcall
