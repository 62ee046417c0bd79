// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/exactness/measure.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <vector>

#include "shardcall/partitioner/ir/float_format.h"
#include "shardcall/partitioner/runtime/float_arrays.h"

namespace shardcall {
inline namespace internal {
namespace {

// Calls `visit` for every element as a number, and for both parts of complex ones. Other types are
// converted in small pieces, since tensors may fill much of the memory.
template <typename Visit>
void ForEachNumber(const Tensor& t, Visit visit) {
  if (t.type() == ElementType::kF32 || t.type() == ElementType::kC64) {
    const int64_t n = t.num_elements() * (t.type() == ElementType::kC64 ? 2 : 1);
    for (int64_t k = 0; k < n; ++k) visit(static_cast<double>(t.data<float>()[k]));
  } else if (t.type() == ElementType::kF64 || t.type() == ElementType::kC128) {
    const int64_t n = t.num_elements() * (t.type() == ElementType::kC128 ? 2 : 1);
    for (int64_t k = 0; k < n; ++k) visit(t.data<double>()[k]);
  } else if (IsFloat(t.type())) {
    constexpr int64_t kBlock = 1024;
    double block[kBlock];
    for (int64_t at = 0; at < t.num_elements(); at += kBlock) {
      const int64_t n = std::min(kBlock, t.num_elements() - at);
      LoadFloats(t.type(), t.data() + at * t.element_bytes(), n, block);
      for (int64_t k = 0; k < n; ++k) visit(block[k]);
    }
  }
}

}  // namespace

int BitsOf(ElementType type) {
  if (type == ElementType::kC64) return 24;
  if (type == ElementType::kC128) return 53;
  return GetFloatFormat(type).mantissa_bits + 1;
}

void Measure::Add(double x) {
  if (x == 0 || !std::isfinite(x)) return;
  largest = std::max(largest, std::abs(x));
  uint64_t bits;
  std::memcpy(&bits, &x, sizeof(bits));
  const int exponent = static_cast<int>(bits >> 52 & 0x7ff);
  const uint64_t mantissa =
      (bits & ((uint64_t{1} << 52) - 1)) | (exponent == 0 ? 0 : uint64_t{1} << 52);
  granule = std::min(granule, std::max(exponent, 1) - 1075 + __builtin_ctzll(mantissa));
}

Measure MeasureOf(const Tensor& t) {
  Measure m;
  ForEachNumber(t, [&](double x) { m.Add(x); });
  return m;
}

double LargestOf(const Tensor& t) {
  if (!IsNumber(t)) return 0;
  double largest = 0;
  ForEachNumber(t, [&](double x) {
    if (!std::isfinite(x)) x = std::numeric_limits<double>::infinity();
    largest = std::max(largest, std::abs(x));
  });
  return largest;
}

Tensor Magnitudes(const Tensor& t, double least) {
  const auto magnitude = [&](double x) {
    return std::isfinite(x) ? std::max(std::abs(x), least) : 0;
  };
  if (IsComplex(t.type())) {
    std::vector<std::complex<double>> x = ToComplexes(t);
    for (auto& c : x) c = magnitude(c.real()) + magnitude(c.imag());
    return FromComplexes(t.type(), t.dims(), x);
  }
  if (t.type() == ElementType::kF32) {
    Tensor out(t.type(), t.dims());
    float* const to = out.MutableData<float>();
    for (int64_t k = 0; k < t.num_elements(); ++k) {
      to[k] = static_cast<float>(magnitude(t.data<float>()[k]));
    }
    return out;
  }
  std::vector<double> x = ToDoubles(t);
  for (double& v : x) v = magnitude(v);
  return FromDoubles(t.type(), t.dims(), x);
}

bool Fits(double bound, int granule, ElementType type) {
  if (bound == 0) return true;
  // At the limit itself a larger sum could have been rounded down to it.
  return granule != INT_MAX && bound < std::ldexp(1.0, BitsOf(type) + granule);
}

}  // namespace internal
}  // namespace shardcall
