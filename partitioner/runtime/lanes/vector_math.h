// SPDX-License-Identifier: Apache-2.0
// Real functions of f32 as branch-free code that compilers vectorise. Most are computed in f64 by
// polynomials and rounded once, to within 0.52 ulp; exp is within 1.01, tanh within 1.5. Results
// have the same bits at every position of an array and on every processor. Subnormals are kept.
#ifndef SHARDCALL_PARTITIONER_RUNTIME_LANES_VECTOR_MATH_H_
#define SHARDCALL_PARTITIONER_RUNTIME_LANES_VECTOR_MATH_H_

#include <bit>
#include <cstdint>
#include <limits>

namespace shardcall {
inline namespace internal {
namespace vector_math {

inline constexpr double kRound = 0x1.8p52;  // adding it rounds to an integer

inline constexpr float kInfinityF = std::numeric_limits<float>::infinity();

// e^x = 2^n (1 + rest), with 2^n as the exponent bits of a float. If 2^n is not a normal f64 the
// values are invalid; callers replace the result.
struct ExpParts {
  uint64_t shifted;  // n << 52
  double rest;       // |rest| <= sqrt(2) - 1
};
inline ExpParts SplitExp(double x) {
  const double t = x * 0x1.71547652b82fep+0, k = t + kRound, f = t - (k - kRound);
  const double f2 = f * f;
  const double a = 0x1.62e42fefd3317p-1 + 0x1.ebfbe0452febfp-3 * f;
  const double b = 0x1.c6b08cb150236p-5 + 0x1.3b2a1c3688021p-7 * f;
  const double c = 0x1.5d88bdd166acbp-10 + 0x1.443f61e5d96a9p-13 * f + 0x1.ffcbb278db8edp-17 * f2;
  const double p = a + f2 * (b + f2 * c);
  return {std::bit_cast<uint64_t>(k) << 52, p * f};  // the low bits of k hold n
}
inline double ExpOf(double x) {
  const ExpParts e = SplitExp(x);
  return std::bit_cast<double>(std::bit_cast<uint64_t>(1 + e.rest) + e.shifted);
}
inline double Expm1Of(double x) {
  const ExpParts e = SplitExp(x);
  const double scale = std::bit_cast<double>(e.shifted + 0x3ff0000000000000u);
  return scale * e.rest + (scale - 1);
}

// In f32 throughout, as it is the most frequent function.
inline float Exp(float x) {
  const float k = x * 0x1.715476p+0f + 0x1.8p23f, n = k - 0x1.8p23f;
  // ln 2 in two parts; the first is so short that n times it is exact.
  const float r = (x - n * 0x1.62e4p-1f) - n * 0x1.7f7d1cp-20f;
  float p = 0x1.6c69cep-10f;
  p = p * r + 0x1.120b24p-7f;
  p = p * r + 0x1.5555bap-5f;
  p = p * r + 0x1.5554dep-3f;
  p = p * r + 0.5f;
  const float y = 1 + (r + r * r * p);
  // 2^n as two factors, which are both normal even if the result is subnormal.
  const int32_t e = static_cast<int32_t>(std::bit_cast<uint32_t>(k) - 0x4b400000u), half = e >> 1;
  const float a = std::bit_cast<float>(static_cast<uint32_t>(half + 127) << 23);
  const float b = std::bit_cast<float>(static_cast<uint32_t>(e - half + 127) << 23);
  float scaled = y * a * b;
  scaled = x > 89 ? kInfinityF : scaled;
  return x < -104 ? 0 : scaled;
}

inline float Expm1(float x) {
  float y = static_cast<float>(Expm1Of(x));
  y = x > 89 ? kInfinityF : y;
  y = x < -18 ? -1 : y;
  return x == 0 ? x : y;  // -0 stays
}

inline float Logistic(float x) {
  float y = static_cast<float>(1 / (1 + ExpOf(-double{x})));
  y = x > 18 ? 1 : y;
  return x < -104 ? 0 : y;
}

// In f32 throughout, within 1.5 ulp: m / (m + 2) with m = e^2|x| - 1, and near 0,
// where that is not exact enough, a polynomial.
inline float Tanh(float x) {
  const float a = x < 0 ? -x : x, z = a * a;
  float c = 0x1.3c222cp-6f;
  c = c * z - 0x1.b7e104p-5f;
  c = c * z + 0x1.110b0cp-3f;
  c = c * z - 0x1.55554cp-2f;
  const float small = a + a * z * c;
  // As in Exp, for 2a. Results for large arguments are replaced.
  const float k = a * 0x1.715476p+1f + 0x1.8p23f, n = k - 0x1.8p23f;
  const float r = (2 * a - n * 0x1.62e4p-1f) - n * 0x1.7f7d1cp-20f;
  float p = 0x1.6c69cep-10f;
  p = p * r + 0x1.120b24p-7f;
  p = p * r + 0x1.5555bap-5f;
  p = p * r + 0x1.5554dep-3f;
  p = p * r + 0.5f;
  const float scale = std::bit_cast<float>((std::bit_cast<uint32_t>(k) << 23) + 0x3f800000u);
  const float m = scale * (r + r * r * p) + (scale - 1);
  float y = m / (m + 2);
  y = a < 9.1f ? y : 1;
  y = a < 0.36f ? small : y;
  const uint32_t sign = std::bit_cast<uint32_t>(x) & 0x80000000u;
  y = std::bit_cast<float>(std::bit_cast<uint32_t>(y) | sign);
  return x == x ? y : x;
}

// log of a positive normal f64.
inline double LogOfNormal(double x) {
  constexpr uint64_t kSqrtHalf = 0x3fe6a09e00000000u, kShift = uint64_t{2048} << 52;
  const uint64_t bits = std::bit_cast<uint64_t>(x);
  // x = 2^n m with m in [sqrt(1/2), sqrt(2)); `biased` is 2048 + n modulo 4096.
  const uint64_t biased = (bits - kSqrtHalf + kShift) >> 52;
  const double n = std::bit_cast<double>(0x4330000000000000u | biased) - (0x1p52 + 2048);
  const double m = std::bit_cast<double>(bits - (biased << 52) + kShift);
  const double s = (m - 1) / (m + 1), z = s * s;
  double p = 0x1.e3b7269224bc8p-3;
  p = p * z + 0x1.24328eb02fbbep-2;
  p = p * z + 0x1.999a9d582f19ep-2;
  p = p * z + 0x1.555554da532b6p-1;
  p = p * z + 0x1.0000000004a79p+1;
  return p * s + n * 0x1.62e42fefa39efp-1;
}
// `log`, or the correct result if x is not a positive number.
inline float LogOr(float x, float log) {
  log = x < kInfinityF ? log : x;  // infinity and NaN
  log = x < 0 ? std::numeric_limits<float>::quiet_NaN() : log;
  return x == 0 ? -kInfinityF : log;
}

inline float Log(float x) { return LogOr(x, static_cast<float>(LogOfNormal(x))); }

inline float Log1p(float x) {
  float y = static_cast<float>(LogOfNormal(1 + double{x}));
  y = x < kInfinityF ? y : x;
  y = x < -1 ? std::numeric_limits<float>::quiet_NaN() : y;
  y = x == -1 ? -kInfinityF : y;
  const float tiny = x - 0.5f * x * x;  // where 1 + x rounds
  y = x < 0x1p-28f ? (x > -0x1p-28f ? tiny : y) : y;
  return x == 0 ? x : y;
}

// erf x = x P(x^2) / Q(x^2); 1 in f32 beyond 3.93.
inline float Erf(float x) {
  const double a = x, z = a * a;
  double p = -0x1.c4861a2012378p-25;
  p = p * z - 0x1.860b0e84ca536p-20;
  p = p * z + 0x1.2f605f6d64295p-12;
  p = p * z + 0x1.67dad9ffb4e3dp-9;
  p = p * z + 0x1.9ae4f3b63d9e2p-5;
  p = p * z + 0x1.4cd3f53c2b873p-3;
  p = p * z + 0x1.20dd7507de3e3p+0;
  double q = -0x1.9d5557ae7246dp-21;
  q = q * z + 0x1.2e10befe63970p-15;
  q = q * z + 0x1.006af66c71e0dp-10;
  q = q * z + 0x1.aaff7102741d1p-7;
  q = q * z + 0x1.a83949dbf1298p-4;
  q = q * z + 0x1.e8d05cd736e39p-2;
  q = q * z + 1;
  float y = static_cast<float>(a * p / q);
  y = x > 3.925f ? 1 : y;
  return x < -3.925f ? -1 : y;
}

// Sine and cosine are for arguments up to kTrigLimit; beyond it, libm is used.
inline constexpr float kTrigLimit = 0x1p20f;
// sin(x + quarters pi/2).
inline float SinShifted(float x, uint64_t quarters) {
  const double d = x, k = d * 0x1.45f306dc9c883p-1 + kRound, n = k - kRound;
  // pi/2 in two parts; the first is so short that n times it is exact.
  const double r = d - n * 0x1.921fb544p+0 - n * 0x1.0b4611a626331p-34, z = r * r;
  double s = 0x1.6ca36be11463ap-19;
  s = s * z - 0x1.a00e8d3c8ee52p-13;
  s = s * z + 0x1.111106cacfa1fp-7;
  s = s * z - 0x1.555555486137ep-3;
  s = s * z + 0x1.fffffffff57b0p-1;
  s *= r;
  double c = -0x1.23abf7e2de40bp-22;
  c = c * z + 0x1.a00dfc2487b47p-16;
  c = c * z - 0x1.6c16b190762b5p-10;
  c = c * z + 0x1.555555424cd5fp-5;
  c = c * z - 0x1.ffffffffde464p-2;
  c = c * z + 0x1.ffffffffffd8bp-1;
  const uint64_t quarter = std::bit_cast<uint64_t>(k) + quarters;
  const double y = (quarter & 1) != 0 ? c : s;
  const uint64_t sign = (quarter & 2) << 62;
  return static_cast<float>(std::bit_cast<double>(std::bit_cast<uint64_t>(y) ^ sign));
}
inline float Sin(float x) {
  const float y = SinShifted(x, 0);
  return x == 0 ? x : y;
}
inline float Cos(float x) { return SinShifted(x, 1); }

}  // namespace vector_math
}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_RUNTIME_LANES_VECTOR_MATH_H_
