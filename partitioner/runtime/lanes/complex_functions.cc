// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/runtime/lanes/complex_functions.h"

#include <cmath>
#include <complex>
#include <limits>

namespace shardcall {
inline namespace internal {
namespace {

#if defined(__HAVE_DISTINCT_FLOAT128) && __HAVE_DISTINCT_FLOAT128
using Widest = _Float128;
Widest Log(Widest x) { return logf128(x); }
Widest Log1p(Widest x) { return log1pf128(x); }
Widest Exp(Widest x) { return expf128(x); }
Widest Sin(Widest x) { return sinf128(x); }
Widest Cos(Widest x) { return cosf128(x); }
Widest Sqrt(Widest x) { return sqrtf128(x); }
Widest Angle(Widest y, Widest x) { return atan2f128(y, x); }
Widest Hypot(Widest x, Widest y) { return hypotf128(x, y); }
Widest CopySign(Widest x, Widest y) { return copysignf128(x, y); }
#else
using Widest = long double;  // has 128 bits on some platforms without f128 functions
#endif
long double Log(long double x) { return std::log(x); }
long double Log1p(long double x) { return std::log1p(x); }
long double Exp(long double x) { return std::exp(x); }
long double Sin(long double x) { return std::sin(x); }
long double Cos(long double x) { return std::cos(x); }
long double Sqrt(long double x) { return std::sqrt(x); }
long double Angle(long double y, long double x) { return std::atan2(y, x); }
long double Hypot(long double x, long double y) { return std::hypot(x, y); }
long double CopySign(long double x, long double y) { return std::copysign(x, y); }

using Wide = std::complex<long double>;

// Used since std::complex does not support 128-bit floats. R has at least twice the digits of the
// operands, so that their squares are exact.
template <typename R>
struct Complex {
  R re, im;

  template <typename T>
  static Complex From(std::complex<T> z) {
    return {z.real(), z.imag()};
  }
  template <typename T>
  std::complex<T> RoundedTo() const {
    return {static_cast<T>(re), static_cast<T>(im)};
  }
};
template <typename R>
Complex<R> Times(Complex<R> a, Complex<R> b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
template <typename R>
Complex<R> Over(Complex<R> a, Complex<R> b) {
  const R size = b.re * b.re + b.im * b.im;
  const Complex<R> top = Times(a, {b.re, -b.im});
  return {top.re / size, top.im / size};
}
template <typename R>
Complex<R> Log(Complex<R> z) {
  const R size = Hypot(z.re, z.im);
  const R angle = Angle(z.im, z.re);
  if (size < 0.5 || size > 2) return {Log(size), angle};
  return {Log1p((z.re - 1) * (z.re + 1) + z.im * z.im) / 2, angle};
}
template <typename R>
Complex<R> Sqrt(Complex<R> z) {
  const R size = Hypot(z.re, z.im);
  if (size == 0) return {0, z.im};
  const R root = Sqrt((size + (z.re < 0 ? -z.re : z.re)) / 2);
  const R other = z.im / (2 * root);
  if (z.re >= 0) return {root, other};
  return {other < 0 ? -other : other, CopySign(root, z.im)};
}

template <typename T>
bool IsFinite(std::complex<T> z) {
  return std::isfinite(z.real()) && std::isfinite(z.imag());
}

template <typename R, typename T>
std::complex<T> Power(std::complex<T> x, std::complex<T> y) {
  constexpr T kNan = std::numeric_limits<T>::quiet_NaN();
  if (y == T{0}) return T{1};
  if (x == T{0}) return y.real() > 0 ? T{0} : std::complex<T>(kNan, kNan);
  if (IsFinite(x) && IsFinite(y)) {
    const auto power = Times(Complex<R>::From(y), Log(Complex<R>::From(x)));
    if (power.re > -11000 && power.re < 11000) {  // its exp is finite
      const R size = Exp(power.re);
      return Complex<R>{size * Cos(power.im), size * Sin(power.im)}.template RoundedTo<T>();
    }
  }
  // Infinities, overflow and underflow follow C99's exp and log.
  const Wide a(x), b(y), log = std::log(a);
  return std::complex<T>(std::exp(Wide(b.real() * log.real() - b.imag() * log.imag(),
                                       b.real() * log.imag() + b.imag() * log.real())));
}

template <typename R, typename T>
std::complex<T> Atan2(std::complex<T> y, std::complex<T> x) {
  if (!IsFinite(x) || !IsFinite(y)) {
    const Wide a(y), b(x), i(0, 1);
    return std::complex<T>(-i * std::log((b + i * a) / std::sqrt(b * b + a * a)));
  }
  const auto a = Complex<R>::From(y), b = Complex<R>::From(x);
  if (x.real() > 0) {
    // Near zero the angle is y / x (1 - (y / x)^2 / 3); the logarithm would lose it.
    const auto ratio = Over(a, b);
    if (Hypot(ratio.re, ratio.im) < R(1e-8)) {
      const auto square = Times(ratio, ratio);
      return Times(ratio, {1 - square.re / 3, -square.im / 3}).template RoundedTo<T>();
    }
  }
  // x + iy and x - iy; their product is x^2 + y^2 without its cancellation.
  const Complex<R> plus = {b.re - a.im, b.im + a.re}, minus = {b.re + a.im, b.im - a.re};
  const auto log = Log(Over(plus, Sqrt(Times(plus, minus))));
  return Complex<R>{log.im, -log.re}.template RoundedTo<T>();
}

}  // namespace

std::complex<float> ComplexPower(std::complex<float> x, std::complex<float> y) {
  return Power<long double>(x, y);
}
std::complex<double> ComplexPower(std::complex<double> x, std::complex<double> y) {
  return Power<Widest>(x, y);
}
std::complex<float> ComplexAtan2(std::complex<float> y, std::complex<float> x) {
  return Atan2<long double>(y, x);
}
std::complex<double> ComplexAtan2(std::complex<double> y, std::complex<double> x) {
  return Atan2<Widest>(y, x);
}

}  // namespace internal
}  // namespace shardcall
