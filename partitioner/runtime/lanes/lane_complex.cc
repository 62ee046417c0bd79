// SPDX-License-Identifier: Apache-2.0
// Lane kernels of complex numbers: c64 and c128 operands, and conversions from and to their parts.
// Functions are computed in the next wider type, so that intermediate cancellation and overflow do
// no harm, with C99's results at infinities.
#include <cmath>
#include <complex>
#include <cstdint>
#include <type_traits>

#include "shardcall/partitioner/ir/row_by_opcode.h"
#include "shardcall/partitioner/runtime/lanes/complex_functions.h"
#include "shardcall/partitioner/runtime/lanes/lane_kernel.h"

namespace shardcall {
inline namespace internal {
namespace {

template <typename R>
using Wide = std::complex<std::conditional_t<sizeof(R) == 4, double, long double>>;

template <typename C>
C Sign(C x) {
  const auto norm = std::abs(x);
  return norm == 0 ? x : x / norm;
}
template <typename C>
C Expm1(C x) {
  const auto a = x.real(), b = x.imag();
  if (!std::isfinite(a) || !std::isfinite(b)) return std::exp(x) - C(1);
  // exp(a) cos(b) - 1 without cancellation near zero.
  const auto half = std::sin(b / 2);
  return C(std::expm1(a) * std::cos(b) - 2 * half * half, b == 0 ? b : std::exp(a) * std::sin(b));
}
template <typename C>
C Log1p(C x) {
  const auto a = x.real(), b = x.imag();
  // Below -1/2 the sum 1 + a is exact.
  if (!(std::abs(b) < 1 && a > -0.5 && a < 1)) return std::log(C(1 + a, b));
  return C(std::log1p(a * (2 + a) + b * b) / 2, std::atan2(b, 1 + a));
}
template <typename C>
C Logistic(C x) {
  if (std::isinf(x.real())) return x.real() < 0 ? C(0) : C(1);
  return C(1) / (C(1) + std::exp(-x));
}
#define SHARDCALL_UNARY(Name, expr)                                        \
  template <typename R>                                                    \
  void Name(const void* const* in, void* out, int64_t n, const int64_t*) { \
    using C = Wide<R>;                                                     \
    const auto* a = static_cast<const std::complex<R>*>(in[0]);            \
    auto* o = static_cast<std::complex<R>*>(out);                          \
    for (int64_t i = 0; i < n; ++i) {                                      \
      const C x(a[i]);                                                     \
      o[i] = std::complex<R>(expr);                                        \
    }                                                                      \
  }
SHARDCALL_UNARY(NegLanes, -x)
SHARDCALL_UNARY(SignLanes, Sign(x))
SHARDCALL_UNARY(AcosLanes, std::acos(x))
SHARDCALL_UNARY(AcoshLanes, std::acosh(x))
SHARDCALL_UNARY(AsinLanes, std::asin(x))
SHARDCALL_UNARY(AsinhLanes, std::asinh(x))
SHARDCALL_UNARY(AtanhLanes, std::atanh(x))
SHARDCALL_UNARY(CosLanes, std::cos(x))
SHARDCALL_UNARY(CoshLanes, std::cosh(x))
SHARDCALL_UNARY(ExpLanes, std::exp(x))
SHARDCALL_UNARY(Expm1Lanes, Expm1(x))
SHARDCALL_UNARY(LogLanes, std::log(x))
SHARDCALL_UNARY(Log1pLanes, Log1p(x))
SHARDCALL_UNARY(LogisticLanes, Logistic(x))
SHARDCALL_UNARY(RsqrtLanes, C(1) / std::sqrt(x))
SHARDCALL_UNARY(SinLanes, std::sin(x))
SHARDCALL_UNARY(SinhLanes, std::sinh(x))
SHARDCALL_UNARY(SqrtLanes, std::sqrt(x))
SHARDCALL_UNARY(TanLanes, std::tan(x))
SHARDCALL_UNARY(TanhLanes, std::tanh(x))
#undef SHARDCALL_UNARY

#define SHARDCALL_BINARY(Name, Type, expr)                                 \
  template <typename R>                                                    \
  void Name(const void* const* in, void* out, int64_t n, const int64_t*) { \
    using C = Type;                                                        \
    const auto* a = static_cast<const std::complex<R>*>(in[0]);            \
    const auto* b = static_cast<const std::complex<R>*>(in[1]);            \
    auto* o = static_cast<std::complex<R>*>(out);                          \
    for (int64_t i = 0; i < n; ++i) {                                      \
      const C x(a[i]), y(b[i]);                                            \
      o[i] = std::complex<R>(expr);                                        \
    }                                                                      \
  }
SHARDCALL_BINARY(AddLanes, std::complex<R>, x + y)
SHARDCALL_BINARY(SubLanes, std::complex<R>, x - y)
// From the parts, without C99's treatment of infinities, as in HLO.
SHARDCALL_BINARY(MulLanes, std::complex<R>,
                 C(x.real() * y.real() - x.imag() * y.imag(),
                   x.real() * y.imag() + x.imag() * y.real()))
SHARDCALL_BINARY(DivLanes, Wide<R>, x / y)
// By the real part, the first of equal ones; HLO defines no other order of complex numbers.
template <typename R>
std::complex<R> Max(const std::complex<R>& x, const std::complex<R>& y) {
  return x.real() >= y.real() ? x : y;
}
template <typename R>
std::complex<R> Min(const std::complex<R>& x, const std::complex<R>& y) {
  return x.real() <= y.real() ? x : y;
}
SHARDCALL_BINARY(MaxLanes, std::complex<R>, Max(x, y))
SHARDCALL_BINARY(MinLanes, std::complex<R>, Min(x, y))
SHARDCALL_BINARY(PowLanes, std::complex<R>, ComplexPower(x, y))
SHARDCALL_BINARY(Atan2Lanes, std::complex<R>, ComplexAtan2(x, y))
#undef SHARDCALL_BINARY

template <typename R>
void ClampLanes(const void* const* in, void* out, int64_t n, const int64_t*) {
  const auto* low = static_cast<const std::complex<R>*>(in[0]);
  const auto* a = static_cast<const std::complex<R>*>(in[1]);
  const auto* high = static_cast<const std::complex<R>*>(in[2]);
  auto* o = static_cast<std::complex<R>*>(out);
  for (int64_t i = 0; i < n; ++i) o[i] = Min(Max(low[i], a[i]), high[i]);
}
template <typename R>
void AbsLanes(const void* const* in, void* out, int64_t n, const int64_t*) {
  const auto* a = static_cast<const std::complex<R>*>(in[0]);
  R* o = static_cast<R*>(out);
  for (int64_t i = 0; i < n; ++i) o[i] = std::hypot(a[i].real(), a[i].imag());
}
template <typename R, int kPart>
void PartLanes(const void* const* in, void* out, int64_t n, const int64_t*) {
  const R* a = static_cast<const R*>(in[0]);
  R* o = static_cast<R*>(out);
  for (int64_t i = 0; i < n; ++i) o[i] = a[2 * i + kPart];
}
template <typename R>
void RealOfReal(const void* const* in, void* out, int64_t n, const int64_t*) {
  const R* a = static_cast<const R*>(in[0]);
  R* o = static_cast<R*>(out);
  for (int64_t i = 0; i < n; ++i) o[i] = a[i];
}
template <typename R>
void ImagOfReal(const void* const*, void* out, int64_t n, const int64_t*) {
  R* o = static_cast<R*>(out);
  for (int64_t i = 0; i < n; ++i) o[i] = R{0};
}
template <typename R>
void MakeLanes(const void* const* in, void* out, int64_t n, const int64_t*) {
  const R* re = static_cast<const R*>(in[0]);
  const R* im = static_cast<const R*>(in[1]);
  R* o = static_cast<R*>(out);
  for (int64_t i = 0; i < n; ++i) {
    o[2 * i] = re[i];
    o[2 * i + 1] = im[i];
  }
}

struct Row {
  Opcode opcode;
  LaneFn fn;
};
template <typename R>
constexpr Row kRows[] = {
    {Opcode::kNegate, NegLanes<R>},
    {Opcode::kSign, SignLanes<R>},
    {Opcode::kAbs, AbsLanes<R>},
    {Opcode::kReal, PartLanes<R, 0>},
    {Opcode::kImag, PartLanes<R, 1>},
    {Opcode::kAcos, AcosLanes<R>},
    {Opcode::kAcosh, AcoshLanes<R>},
    {Opcode::kAsin, AsinLanes<R>},
    {Opcode::kAsinh, AsinhLanes<R>},
    {Opcode::kAtanh, AtanhLanes<R>},
    {Opcode::kAtan2, Atan2Lanes<R>},
    {Opcode::kCosine, CosLanes<R>},
    {Opcode::kCosh, CoshLanes<R>},
    {Opcode::kExponential, ExpLanes<R>},
    {Opcode::kExponentialMinusOne, Expm1Lanes<R>},
    {Opcode::kLog, LogLanes<R>},
    {Opcode::kLogPlusOne, Log1pLanes<R>},
    {Opcode::kLogistic, LogisticLanes<R>},
    {Opcode::kRsqrt, RsqrtLanes<R>},
    {Opcode::kSine, SinLanes<R>},
    {Opcode::kSinh, SinhLanes<R>},
    {Opcode::kSqrt, SqrtLanes<R>},
    {Opcode::kTan, TanLanes<R>},
    {Opcode::kTanh, TanhLanes<R>},
    {Opcode::kAdd, AddLanes<R>},
    {Opcode::kSubtract, SubLanes<R>},
    {Opcode::kMultiply, MulLanes<R>},
    {Opcode::kDivide, DivLanes<R>},
    {Opcode::kMaximum, MaxLanes<R>},
    {Opcode::kMinimum, MinLanes<R>},
    {Opcode::kPower, PowLanes<R>},
    {Opcode::kClamp, ClampLanes<R>},
};

template <typename R>
constexpr Row kRowsOnReals[] = {
    {Opcode::kReal, RealOfReal<R>},
    {Opcode::kImag, ImagOfReal<R>},
    {Opcode::kComplex, MakeLanes<R>},
};

template <size_t N>
LaneFn Find(const Row (&rows)[N], Opcode opcode) {
  const Row* const row = RowByOpcode(rows, opcode);
  return row == nullptr ? nullptr : row->fn;
}

}  // namespace

LaneFn FindComplexFn(Opcode opcode, ElementType type) {
  switch (type) {
    case ElementType::kC64: return Find(kRows<float>, opcode);
    case ElementType::kC128: return Find(kRows<double>, opcode);
    case ElementType::kF32: return Find(kRowsOnReals<float>, opcode);
    case ElementType::kF64: return Find(kRowsOnReals<double>, opcode);
    default: return nullptr;
  }
}

}  // namespace internal
}  // namespace shardcall
