// SPDX-License-Identifier: Apache-2.0
#include "shardcall/kernels/host/matmul.h"

#include <cmath>
#include <complex>
#include <cstring>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "shardcall/sharding/base/status.h"
#include "shardcall/sharding/narrow_float.h"

namespace shardcall {
namespace {

constexpr ElementType kF32 = ElementType::kF32;
constexpr ElementType kBF16 = ElementType::kBF16;

std::vector<double> Normal(int64_t n, int seed) {
  std::mt19937_64 rng(seed);
  std::normal_distribution<double> normal;
  std::vector<double> v(n);
  for (double& x : v) x = normal(rng);
  return v;
}

std::vector<char> Stored(ElementType type, std::vector<double>* values) {
  std::vector<char> bytes(values->size() * ElementTypeBytes(type) + 1);
  StoreFloats(type, values->data(), values->size(), bytes.data());
  LoadFloats(type, bytes.data(), values->size(), values->data());
  return bytes;
}

double At(const MatmulShape& s, const std::vector<double>& a, const std::vector<double>& b,
          int64_t batch, int64_t i, int64_t j) {
  double sum = 0;
  for (int64_t p = 0; p < s.k; ++p) {
    sum += a[batch * s.m * s.k + (s.transpose_a ? p * s.m + i : i * s.k + p)] *
           b[batch * s.k * s.n + (s.transpose_b ? j * s.k + p : p * s.n + j)];
  }
  return sum;
}

void CheckFloats(const MatmulShape& s, ElementType type, ElementType result) {
  std::vector<double> a = Normal(s.batch * s.m * s.k, 1), b = Normal(s.batch * s.k * s.n, 2);
  std::vector<double> c(s.batch * s.m * s.n, std::nan(""));
  const std::vector<char> am = Stored(type, &a), bm = Stored(type, &b);
  std::vector<char> cm = Stored(result, &c);
  const absl::Status status = Matmul(s, type, am.data(), type, bm.data(), result, cm.data());
  ASSERT_TRUE(status.ok()) << status;
  LoadFloats(result, cm.data(), c.size(), c.data());
  const int bits = ElementTypeBits(result);
  const double relative = bits >= 64 ? 1e-14 : bits == 32 ? 1e-6 : bits == 16 ? 5e-3 : 0.1;
  for (int64_t t = 0; t < s.batch; ++t) {
    for (int64_t i = 0; i < s.m; ++i) {
      for (int64_t j = 0; j < s.n; ++j) {
        const double expected = At(s, a, b, t, i, j);
        EXPECT_NEAR(c[(t * s.m + i) * s.n + j], expected, relative * (std::abs(expected) + s.k));
      }
    }
  }
}

TEST(Matmul, AllTransposesAndSizesOfFloats) {
  for (ElementType type : {kF32, ElementType::kF64, kBF16, ElementType::kF16}) {
    for (bool ta : {false, true}) {
      for (bool tb : {false, true}) {
        CheckFloats({1, 3, 4, 5, ta, tb}, type, type);     // own loops
        CheckFloats({2, 33, 17, 65, ta, tb}, type, type);  // BLAS
        CheckFloats({3, 1, 40, 9, ta, tb}, type, type);
        CheckFloats({3, 9, 1, 100, ta, tb}, type, type);
      }
    }
  }
}

// More rows than are converted at a time; small integers, so sums are exact.
TEST(Matmul, LongNarrowOperandsAreConvertedInParts) {
  constexpr int64_t m = 700, n = 9, k = 1024;
  for (bool ta : {false, true}) {
    for (ElementType result : {kBF16, kF32}) {
      const MatmulShape s{2, m, n, k, ta, true};
      std::vector<double> a(s.batch * m * k), b(s.batch * k * n), c(s.batch * m * n);
      for (size_t i = 0; i < a.size(); ++i) a[i] = static_cast<double>(i * 7 % 5) - 2;
      for (size_t i = 0; i < b.size(); ++i) b[i] = i % 131 == 0;
      const std::vector<char> am = Stored(kBF16, &a), bm = Stored(kBF16, &b);
      std::vector<char> cm = Stored(result, &c);
      ASSERT_TRUE(Matmul(s, kBF16, am.data(), kBF16, bm.data(), result, cm.data()).ok());
      LoadFloats(result, cm.data(), c.size(), c.data());
      for (int64_t t = 0; t < s.batch; ++t) {
        for (int64_t i = 0; i < m; ++i) {
          for (int64_t j = 0; j < n; ++j) {
            ASSERT_EQ(c[(t * m + i) * n + j], At(s, a, b, t, i, j)) << i << ", " << j;
          }
        }
      }
    }
  }
}

TEST(Matmul, NarrowOperandsGiveF32ResultsThatWereNotRounded) {
  CheckFloats({2, 8, 9, 70}, kBF16, kF32);
  CheckFloats({2, 8, 9, 70}, ElementType::kF8E4M3FN, kF32);
  CheckFloats({2, 8, 9, 7}, ElementType::kF8E5M2, kBF16);
  CheckFloats({2, 8, 9, 70}, kF32, ElementType::kF64);
}

TEST(Matmul, SumsOfBf16AreRoundedOnceAtTheEnd) {
  // 1 + 256 times 2^-9: each term alone would vanish beside 1 in bf16.
  constexpr int k = 257;
  std::vector<uint16_t> a(k, FloatToBF16(0x1p-9f)), b(k, FloatToBF16(1));
  a[0] = FloatToBF16(1);
  uint16_t c = 0;
  ASSERT_TRUE(Gemm(kBF16, kBF16, 1, 1, k, a.data(), b.data(), &c).ok());
  EXPECT_EQ(BF16ToFloat(c), 1.5f);
}

template <typename T>
void CheckComplex(ElementType type) {
  const MatmulShape s{2, 7, 9, 12, true, false};
  const std::vector<double> re = Normal(2 * 7 * 12 * 2, 1), im = Normal(2 * 12 * 9 * 2, 2);
  std::vector<std::complex<T>> a(2 * 7 * 12), b(2 * 12 * 9), c(2 * 7 * 9);
  for (size_t i = 0; i < a.size(); ++i) a[i] = {T(re[2 * i]), T(re[2 * i + 1])};
  for (size_t i = 0; i < b.size(); ++i) b[i] = {T(im[2 * i]), T(im[2 * i + 1])};
  ASSERT_TRUE(Matmul(s, type, a.data(), type, b.data(), type, c.data()).ok());
  for (int64_t t = 0; t < 2; ++t) {
    for (int64_t i = 0; i < 7; ++i) {
      for (int64_t j = 0; j < 9; ++j) {
        std::complex<double> sum = 0;
        for (int64_t p = 0; p < 12; ++p) {
          sum += std::complex<double>(a[t * 84 + p * 7 + i]) *
                 std::complex<double>(b[t * 108 + p * 9 + j]);
        }
        EXPECT_LT(std::abs(std::complex<double>(c[(t * 7 + i) * 9 + j]) - sum), 1e-4);
      }
    }
  }
}

TEST(Matmul, ComplexIsNotConjugatedByATranspose) {
  CheckComplex<float>(ElementType::kC64);
  CheckComplex<double>(ElementType::kC128);
}

template <typename Int>
void CheckIntegers(ElementType type, const MatmulShape& s) {
  std::mt19937_64 rng(5);
  std::vector<Int> a(s.batch * s.m * s.k), b(s.batch * s.k * s.n), c(s.batch * s.m * s.n);
  for (Int& x : a) x = static_cast<Int>(rng());
  for (Int& x : b) x = static_cast<Int>(rng());
  ASSERT_TRUE(Matmul(s, type, a.data(), type, b.data(), type, c.data()).ok());
  for (int64_t t = 0; t < s.batch; ++t) {
    for (int64_t i = 0; i < s.m; ++i) {
      for (int64_t j = 0; j < s.n; ++j) {
        uint64_t sum = 0;
        for (int64_t p = 0; p < s.k; ++p) {
          sum +=
              static_cast<uint64_t>(
                  a[t * s.m * s.k + (s.transpose_a ? p * s.m + i : i * s.k + p)]) *
              static_cast<uint64_t>(b[t * s.k * s.n + (s.transpose_b ? j * s.k + p : p * s.n + j)]);
        }
        ASSERT_EQ(c[(t * s.m + i) * s.n + j], static_cast<Int>(sum)) << ElementTypeName(type);
      }
    }
  }
}

// Whatever the signs of its zero terms are: a sum starts at +0.
template <typename R>
void CheckZeroSums(ElementType type) {
  using C = std::complex<R>;
  constexpr int64_t m = 9, n = 11, k = 70;
  for (int signs = 0; signs < 16; ++signs) {
    const R zero = signs & 1 ? R(-0.0) : R(0), one = signs & 2 ? R(-1) : R(1);
    const std::vector<C> a(m * k, C(zero, zero));
    const std::vector<C> b(k * n, C(one, signs & 4 ? -one : signs & 8 ? R(0) : one));
    std::vector<C> c(m * n);
    ASSERT_TRUE(
        Matmul({.m = m, .n = n, .k = k}, type, a.data(), type, b.data(), type, c.data()).ok());
    for (const C& sum : c) {
      ASSERT_TRUE(sum == C(0) && !std::signbit(sum.real()) && !std::signbit(sum.imag()))
          << signs << ": " << sum;
    }
  }
}

TEST(Matmul, ComplexSumsOfZerosAreNeverNegativeZero) {
  CheckZeroSums<float>(ElementType::kC64);
  CheckZeroSums<double>(ElementType::kC128);
}

TEST(Matmul, IntegersWrapAroundExactlyInEveryWidth) {
  for (const MatmulShape& s : {MatmulShape{2, 5, 6, 7, false, false}, {1, 4, 30, 50, true, true}}) {
    CheckIntegers<int8_t>(ElementType::kS8, s);
    CheckIntegers<int16_t>(ElementType::kS16, s);
    CheckIntegers<int32_t>(ElementType::kS32, s);
    CheckIntegers<int64_t>(ElementType::kS64, s);
    CheckIntegers<uint8_t>(ElementType::kU8, s);
    CheckIntegers<uint16_t>(ElementType::kU16, s);
    CheckIntegers<uint32_t>(ElementType::kU32, s);
    CheckIntegers<uint64_t>(ElementType::kU64, s);
  }
}

TEST(Matmul, NarrowIntegersWidenIntoTheResult) {
  const std::vector<int8_t> a = {-128, 127, 3, 4}, b = {-128, 1, 127, -1};
  std::vector<int32_t> wide(4);
  ASSERT_TRUE(
      Gemm(ElementType::kS8, ElementType::kS32, 2, 2, 2, a.data(), b.data(), wide.data()).ok());
  EXPECT_EQ(wide, (std::vector<int32_t>{16384 + 16129, -255, -384 + 508, -1}));
  std::vector<int64_t> wider(4);
  ASSERT_TRUE(
      Gemm(ElementType::kS8, ElementType::kS64, 2, 2, 2, a.data(), b.data(), wider.data()).ok());
  EXPECT_EQ(wider[1], -255);
  std::vector<float> real(4);
  ASSERT_TRUE(Gemm(ElementType::kS8, kF32, 2, 2, 2, a.data(), b.data(), real.data()).ok());
  EXPECT_EQ(real[1], -255);
}

TEST(Matmul, FourBitIntegersWrapInFourBits) {
  const std::vector<int8_t> a = {7, 7}, b = {7, 1};  // 49 + 7 = 56 = 8 modulo 16
  int8_t c = 0;
  ASSERT_TRUE(Gemm(ElementType::kS4, ElementType::kS4, 1, 1, 2, a.data(), b.data(), &c).ok());
  EXPECT_EQ(c, -8);
  ASSERT_TRUE(Gemm(ElementType::kU4, ElementType::kU4, 1, 1, 2, a.data(), b.data(), &c).ok());
  EXPECT_EQ(c, 8);
}

TEST(Matmul, PredIsOrOfAnds) {
  const bool a[] = {true, true, false, false, true, false},
             b[] = {true, false, true, true, true, false};
  bool c[4] = {};
  ASSERT_TRUE(Gemm(ElementType::kPred, ElementType::kPred, 2, 2, 3, a, b, c).ok());
  EXPECT_EQ((std::vector<bool>(c, c + 4)), (std::vector<bool>{true, true, true, true}));
}

TEST(Matmul, AnEmptyContractionGivesZerosAndEmptyResultsNothing) {
  for (ElementType type : {kF32, ElementType::kS32, kBF16, ElementType::kC64}) {
    std::vector<char> c(2 * 300 * 8, 1);
    ASSERT_TRUE(Gemm(type, type, 2, 300, 0, nullptr, nullptr, c.data()).ok());
    const int64_t bytes = 600 * ElementTypeBytes(type);
    EXPECT_EQ(std::count(c.begin(), c.begin() + bytes, 0), bytes) << ElementTypeName(type);
    EXPECT_TRUE(Gemm(type, type, 0, 3, 4, nullptr, nullptr, nullptr).ok());
  }
}

TEST(Matmul, ARowOfASmallPanelHasTheSameBitsInEveryNumberOfRows) {
  for (const auto& [n, k] : {std::pair{6, 7}, {1, 64}, {64, 1}, {8, 8}}) {
    constexpr int64_t m = 37;
    std::vector<double> av = Normal(m * k, 1), bv = Normal(k * n, 2), cv(m * n);
    const std::vector<char> a = Stored(kF32, &av), b = Stored(kF32, &bv);
    std::vector<char> whole = Stored(kF32, &cv);
    ASSERT_TRUE(Gemm(kF32, kF32, m, n, k, a.data(), b.data(), whole.data()).ok());
    for (int64_t rows : {2, 4, 9, 18}) {
      std::vector<char> part(rows * n * 4);
      ASSERT_TRUE(
          Gemm(kF32, kF32, rows, n, k, a.data() + rows * k * 4, b.data(), part.data()).ok());
      EXPECT_EQ(std::memcmp(part.data(), whole.data() + rows * n * 4, part.size()), 0)
          << rows << " rows, n " << n << ", k " << k;
    }
  }
}

TEST(Matmul, TypesThatDoNotGoTogetherAreAnError) {
  EXPECT_FALSE(MatmulSupports(kF32, kF32, ElementType::kS32));
  EXPECT_FALSE(MatmulSupports(ElementType::kC64, ElementType::kC64, kF32));
  EXPECT_FALSE(MatmulSupports(ElementType::kToken, kF32, kF32));
  float x = 0;
  const absl::Status status = Gemm(kF32, ElementType::kPred, 1, 1, 1, &x, &x, &x);
  EXPECT_EQ(DiagnosticCode(status), "E134") << status;
  EXPECT_EQ(DiagnosticCode(Gemm(kF32, kF32, int64_t{1} << 31, 0, 1, &x, &x, &x)), "E133");
}

}  // namespace
}  // namespace shardcall
