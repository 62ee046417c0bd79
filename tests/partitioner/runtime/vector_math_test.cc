// SPDX-License-Identifier: Apache-2.0
// The vectorised functions: how far they are from the exact value, and that an
// element's value does not depend on where it stands.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "shardcall/partitioner/runtime/lanes/lane_kernel.h"
#include "shardcall/partitioner/runtime/lanes/reduce_kernels.h"

namespace shardcall {
namespace {

struct Function {
  Opcode opcode;
  double (*exact)(double);  // f64 is exact enough to judge f32 by
};

class VectorMathTest : public testing::TestWithParam<Function> {
 protected:
  static std::vector<float> Run(Opcode opcode, const std::vector<float>& x) {
    const ElementType type[] = {ElementType::kF32};
    const LaneKernel kernel = FindLaneKernel(opcode, nullptr, type, ElementType::kF32);
    std::vector<float> y(x.size());
    const void* in[] = {x.data()};
    kernel.Run(in, y.data(), static_cast<int64_t>(x.size()));
    return y;
  }
  // Floats of all magnitudes and signs, infinities, NaN, zeros, subnormals.
  static std::vector<float> Samples() {
    std::vector<float> x;
    for (uint64_t bits = 0; bits < (uint64_t{1} << 32); bits += 21313) {
      x.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits)));
    }
    for (float v : {0.0f, -0.0f, INFINITY, -INFINITY, 1.0f, -1.0f, 88.7f, -103.9f, 1e-40f}) {
      x.push_back(v);
    }
    return x;
  }
};

TEST_P(VectorMathTest, IsWithinTwoUlpOfTheExactValue) {
  const std::vector<float> x = Samples(), y = Run(GetParam().opcode, x);
  for (size_t i = 0; i < x.size(); ++i) {
    const double exact = GetParam().exact(x[i]);
    const float rounded = static_cast<float>(exact);
    if (std::isnan(rounded) || std::isinf(rounded) || rounded == 0) {
      ASSERT_EQ(std::isnan(y[i]), std::isnan(rounded)) << x[i];
      if (!std::isnan(rounded)) {
        ASSERT_EQ(y[i], rounded) << x[i];
        ASSERT_EQ(std::signbit(y[i]), std::signbit(rounded)) << x[i];
      }
      continue;
    }
    int exponent;
    std::frexp(exact, &exponent);
    const double ulp = std::ldexp(1.0, std::max(exponent - 24, -149));
    ASSERT_LE(std::fabs(y[i] - exact), 2 * ulp) << x[i];
  }
}

TEST_P(VectorMathTest, ValueDoesNotDependOnThePlace) {
  std::vector<float> x = Samples();
  x.resize(1000);
  const std::vector<float> together = Run(GetParam().opcode, x);
  for (size_t i = 0; i < x.size(); ++i) {
    const std::vector<float> alone = Run(GetParam().opcode, {x[i]});
    ASSERT_EQ(std::bit_cast<uint32_t>(alone[0]), std::bit_cast<uint32_t>(together[i])) << x[i];
  }
}

INSTANTIATE_TEST_SUITE_P(
    Functions, VectorMathTest,
    testing::Values(Function{Opcode::kExponential, [](double x) { return std::exp(x); }},
                    Function{Opcode::kExponentialMinusOne, [](double x) { return std::expm1(x); }},
                    Function{Opcode::kLog, [](double x) { return std::log(x); }},
                    Function{Opcode::kLogPlusOne, [](double x) { return std::log1p(x); }},
                    Function{Opcode::kLogistic, [](double x) { return 1 / (1 + std::exp(-x)); }},
                    Function{Opcode::kTanh, [](double x) { return std::tanh(x); }},
                    Function{Opcode::kErf, [](double x) { return std::erf(x); }},
                    Function{Opcode::kSine, [](double x) { return std::sin(x); }},
                    Function{Opcode::kCosine, [](double x) { return std::cos(x); }}),
    [](const auto& info) {
      std::string name(OpcodeText(info.param.opcode));
      name.erase(std::remove(name.begin(), name.end(), '-'), name.end());
      return name;
    });

// [outer, extent, inner] by the definition.
TEST(ReduceExtreme, KeepsNansAndSignsOfZerosWhereverTheyStand) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const bool max : {true, false}) {
    const ReduceFn reduce =
        FindReduceFn(max ? PartialOp::kMax : PartialOp::kMin, ElementType::kF32);
    const float init = max ? -INFINITY : INFINITY;
    for (const int64_t extent : {0, 1, 5, 63, 64, 65, 200, 1100}) {
      for (const int64_t inner : {1, 3, 64, 130}) {
        // Zeros everywhere but for what stands at one place of each column.
        for (const float special : {0.0f, -0.0f, nan, 7.0f, -7.0f}) {
          std::vector<float> x(extent * inner, max ? -0.0f : 0.0f);
          for (int64_t b = 0; b < inner && extent > 0; ++b)
            x[(b * 31 % extent) * inner + b] = special;
          std::vector<float> y(inner);
          reduce(ElementType::kF32, x.data(), &init, y.data(), 1, extent, inner);
          for (int64_t b = 0; b < inner; ++b) {
            float want = init;
            if (extent > 0) {
              const float rest = max ? -0.0f : 0.0f;
              const bool wins = max ? special > 0 || (special == 0 && !std::signbit(special))
                                    : special < 0 || (special == 0 && std::signbit(special));
              want = wins || std::isnan(special) || extent == 1 ? special : rest;
            }
            ASSERT_EQ(std::isnan(y[b]), std::isnan(want))
                << extent << " " << inner << " " << special;
            if (std::isnan(want)) continue;
            ASSERT_EQ(y[b], want) << extent << " " << inner << " " << special;
            ASSERT_EQ(std::signbit(y[b]), std::signbit(want)) << extent << " " << inner;
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace shardcall
