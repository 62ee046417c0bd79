// SPDX-License-Identifier: Apache-2.0
// Convolutions of floats, which go by products of laid out windows, against the
// same numbers as integers, which do not: small integers are exact in both.
#include <algorithm>
#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "shardcall/partitioner/runtime/io/random_inputs.h"
#include "tests/partitioner/runtime/run_text.h"

namespace shardcall {
namespace {

std::string Dims4(const std::string& labels, const std::string& order, std::vector<int64_t> sizes) {
  std::string dims;
  for (char label : labels) {
    absl::StrAppend(&dims, dims.empty() ? "" : ",", sizes[order.find(label)]);
  }
  return dims;
}

struct Case {
  int64_t batch, height, width, in, out, groups, window_h, window_w;
  int64_t stride, pad_low, pad_high, lhs_dilate, rhs_dilate;
  bool reversed;
  std::string lhs, rhs, result;  // dim_labels

  int64_t Extent(int64_t size, int64_t window) const {
    const int64_t base = (size - 1) * lhs_dilate + 1 + pad_low + pad_high;
    return (base - ((window - 1) * rhs_dilate + 1)) / stride + 1;
  }
  std::string Text(const std::string& type) const {
    const auto twice = [](int64_t x) { return absl::StrCat(x, "x", x); };
    const std::string pad = absl::StrCat(pad_low, "_", pad_high);
    return absl::StrCat(
        "x = ", type, "[", Dims4(lhs, "b01f", {batch, height, width, in}), "] parameter(0)\n",
        "k = ", type, "[", Dims4(rhs, "01io", {window_h, window_w, in / groups, out}),
        "] parameter(1)\nROOT c = ", type, "[",
        Dims4(result, "b01f", {batch, Extent(height, window_h), Extent(width, window_w), out}),
        "] convolution(x, k), window={size=", window_h, "x", window_w, " stride=", twice(stride),
        " pad=", pad, "x", pad, " lhs_dilate=", twice(lhs_dilate),
        " rhs_dilate=", twice(rhs_dilate), reversed ? " rhs_reversal=1x1" : "",
        "}, dim_labels=", lhs, "_", rhs, "->", result, ", feature_group_count=", groups);
  }
};

TEST(FastConvolution, GivesTheNumbersOfIntegers) {
  std::mt19937 random(5);
  const auto pick = [&](std::vector<int64_t> v) { return v[random() % v.size()]; };
  const auto shuffled = [&](std::string s) {
    if (random() % 2 == 0) std::shuffle(s.begin(), s.end(), random);
    return s;
  };
  int done = 0;
  for (int round = 0; round < 400; ++round) {
    Case c{pick({1, 3}),      pick({1, 6, 11}),    pick({5, 9, 14}), pick({2, 8, 12}),
           pick({4, 16, 30}), pick({1, 1, 2}),     pick({1, 3, 7}),  pick({1, 2, 5}),
           pick({1, 2}),      pick({-1, 0, 1, 3}), pick({0, 1, 4}),  pick({1, 1, 2}),
           pick({1, 1, 3}),   random() % 4 == 0,   shuffled("b01f"), shuffled("01io"),
           shuffled("b01f")};
    if (round % 4 == 0) c.out = c.groups = c.in;  // each feature by itself
    if (c.Extent(c.height, c.window_h) < 1 || c.Extent(c.width, c.window_w) < 1) continue;
    if ((c.height - 1) * c.lhs_dilate + 1 + c.pad_low + c.pad_high < 1) continue;
    ++done;
    std::vector<std::vector<double>> results;
    const auto integers = LowerText(c.Text("s32"));
    ASSERT_TRUE(integers.ok()) << integers.status() << c.Text("s32");
    const std::vector<Tensor> inputs = RandomInputs((*integers)->parameters, round);
    for (const char* type : {"s32", "f32", "f64", "bf16"}) {
      const auto program = LowerText(c.Text(type));
      ASSERT_TRUE(program.ok()) << program.status();
      std::vector<Tensor> arguments;
      for (size_t k = 0; k < inputs.size(); ++k) {
        std::vector<double> x = Numbers(inputs[k]);
        const LeafShape& shape = (*program)->parameters[k];
        arguments.push_back(std::string(type) == "s32" ? inputs[k]
                                                       : FromDoubles(shape.type, shape.dims, x));
      }
      const auto result = Execute(**program, std::move(arguments), {});
      ASSERT_TRUE(result.ok()) << result.status();
      results.push_back(Numbers((*result)[0]));
      if (std::string(type) == "bf16") {  // rounds once, at the end
        for (double& x : results[0]) x = RoundToFloatType(ElementType::kBF16, x);
      }
      ASSERT_EQ(results.back(), results[0]) << c.Text(type);
    }
  }
  EXPECT_GT(done, 200);
}

// A row of the product has the same bits however many images there are.
TEST(FastConvolution, AnImageDoesNotDependOnTheOthers) {
  Case c{4, 14, 14, 16, 24, 1, 3, 3, 1, 1, 1, 1, 1, false, "b01f", "01io", "b01f"};
  const auto four = *LowerText(c.Text("f32"));
  c.batch = 1;
  const auto one = *LowerText(c.Text("f32"));
  std::mt19937 random(1);
  std::vector<Tensor> inputs;
  for (const LeafShape& shape : four->parameters) {
    inputs.emplace_back(shape.type, shape.dims);
    float* x = inputs.back().MutableData<float>();
    for (int64_t i = 0; i < inputs.back().num_elements(); ++i) {
      x[i] = static_cast<float>(random()) * 0x1p-32f - 0.5f;
    }
  }
  const Tensor all = (*Execute(*four, absl::MakeConstSpan(inputs), {}))[0];
  const int64_t in = inputs[0].num_elements() / 4, out = all.num_elements() / 4;
  for (int64_t b = 0; b < 4; ++b) {
    const std::vector<Tensor> image = {Tensor::FromBytes(ElementType::kF32, one->parameters[0].dims,
                                                         inputs[0].data<float>() + b * in),
                                       inputs[1]};
    const Tensor alone = (*Execute(*one, absl::MakeConstSpan(image), {}))[0];
    const Tensor part =
        Tensor::FromBytes(ElementType::kF32, alone.dims(), all.data<float>() + b * out);
    EXPECT_TRUE(BitwiseEqual(alone, part)) << b;
  }
}

}  // namespace
}  // namespace shardcall
