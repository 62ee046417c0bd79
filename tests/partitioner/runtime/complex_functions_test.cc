// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/runtime/lanes/complex_functions.h"

#include <cmath>
#include <complex>
#include <limits>

#include "gtest/gtest.h"

namespace shardcall {
namespace {

using C = std::complex<double>;

TEST(ComplexFunctions, WholePowersAreThoseOfGaussianIntegers) {
  C product = 1;
  for (int k = 0; k < 24; ++k) {
    const C power = ComplexPower(C(2, -3), C(k));
    // (2 - 3i)^24 has less than 53 bits, so the product is exact.
    EXPECT_LE(std::abs(power - product), 1.2e-16 * std::abs(product)) << k;
    product *= C(2, -3);
  }
}

TEST(ComplexFunctions, LargePowersKeepTheirDigits) {
  // i^(4n) = 1; the angle is a thousand turns.
  EXPECT_EQ(ComplexPower(C(0, 1), C(4000)).real(), 1.0);
  EXPECT_LT(std::abs(ComplexPower(C(0, 1), C(4000)).imag()), 1e-30);
}

TEST(ComplexFunctions, PowersOfZeroAndToZero) {
  EXPECT_EQ(ComplexPower(C(0, 0), C(0, 0)), C(1));
  EXPECT_EQ(ComplexPower(C(0, 0), C(2, 5)), C(0));
  EXPECT_TRUE(std::isnan(ComplexPower(C(0, 0), C(-1, 0)).real()));
  EXPECT_EQ(ComplexPower(C(std::numeric_limits<double>::infinity(), 0), C(0, 0)), C(1));
}

TEST(ComplexFunctions, TheAngleOfRealNumbersIsThatOfAtan2) {
  for (double y : {-3.0, -1e-9, 1e-300, 0.5, 7.0}) {
    for (double x : {-4.0, -1e-3, 2.0, 1e9}) {
      const C angle = ComplexAtan2(C(y), C(x));
      EXPECT_DOUBLE_EQ(angle.real(), std::atan2(y, x)) << y << " over " << x;
      EXPECT_LT(std::abs(angle.imag()), 1e-30) << y << " over " << x;
    }
  }
}

TEST(ComplexFunctions, TheAngleUndoesTheTangent) {
  for (const C& t : {C(0.25, 1e-7), C(-1.5, 0.5), C(1e-9, -1e-12), C(0.75, -2)}) {
    EXPECT_LE(std::abs(ComplexAtan2(std::tan(t), C(1)) - t), 1e-14 * std::abs(t)) << t;
  }
}

TEST(ComplexFunctions, FloatsAreRoundedFromDoubles) {
  const std::complex<float> x(0.3f, -1.7f), y(2.5f, 0.125f);
  EXPECT_EQ(ComplexPower(x, y), std::complex<float>(ComplexPower(C(x), C(y))));
  EXPECT_EQ(ComplexAtan2(x, y), std::complex<float>(ComplexAtan2(C(x), C(y))));
}

}  // namespace
}  // namespace shardcall
