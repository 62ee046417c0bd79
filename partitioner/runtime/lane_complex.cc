// SPDX-License-Identifier: Apache-2.0
// Lane kernels of complex numbers: c64 and c128 operands, and the making and
// taking apart of them.
#include <cmath>
#include <complex>
#include <cstdint>

#include "partitioner/runtime/lane_kernel.h"

namespace shardcall {
namespace {

template <typename C>
C Sign(C x) {
  using R = typename C::value_type;
  const R norm = std::abs(x);
  return norm == R{0} ? C{} : x / norm;
}

#define SHARDCALL_UNARY(Name, expr)                                        \
  template <typename R>                                                    \
  void Name(const void* const* in, void* out, int64_t n, const int64_t*) { \
    using C = std::complex<R>;                                             \
    const C* a = static_cast<const C*>(in[0]);                             \
    C* o = static_cast<C*>(out);                                           \
    for (int64_t i = 0; i < n; ++i) {                                      \
      const C x = a[i];                                                    \
      o[i] = (expr);                                                       \
    }                                                                      \
  }
SHARDCALL_UNARY(NegLanes, -x)
SHARDCALL_UNARY(SignLanes, Sign(x))
SHARDCALL_UNARY(CosLanes, std::cos(x))
SHARDCALL_UNARY(ExpLanes, std::exp(x))
SHARDCALL_UNARY(Expm1Lanes, std::exp(x) - R{1})
SHARDCALL_UNARY(LogLanes, std::log(x))
SHARDCALL_UNARY(Log1pLanes, std::log(x + R{1}))
SHARDCALL_UNARY(LogisticLanes, R{1} / (R{1} + std::exp(-x)))
SHARDCALL_UNARY(RsqrtLanes, R{1} / std::sqrt(x))
SHARDCALL_UNARY(SinLanes, std::sin(x))
SHARDCALL_UNARY(SqrtLanes, std::sqrt(x))
SHARDCALL_UNARY(TanLanes, std::tan(x))
SHARDCALL_UNARY(TanhLanes, std::tanh(x))
#undef SHARDCALL_UNARY

#define SHARDCALL_BINARY(Name, expr)                                       \
  template <typename R>                                                    \
  void Name(const void* const* in, void* out, int64_t n, const int64_t*) { \
    using C = std::complex<R>;                                             \
    const C* a = static_cast<const C*>(in[0]);                             \
    const C* b = static_cast<const C*>(in[1]);                             \
    C* o = static_cast<C*>(out);                                           \
    for (int64_t i = 0; i < n; ++i) {                                      \
      const C x = a[i], y = b[i];                                          \
      o[i] = (expr);                                                       \
    }                                                                      \
  }
SHARDCALL_BINARY(AddLanes, x + y)
SHARDCALL_BINARY(SubLanes, x - y)
// By parts: no detour over infinities, as in HLO.
SHARDCALL_BINARY(MulLanes, C(x.real() * y.real() - x.imag() * y.imag(),
                             x.real() * y.imag() + x.imag() * y.real()))
SHARDCALL_BINARY(DivLanes, x / y)
SHARDCALL_BINARY(PowLanes, x == C{} && y == C{} ? C{1} : std::pow(x, y))
#undef SHARDCALL_BINARY

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

template <typename R>
LaneFn Find(Opcode opcode) {
  switch (opcode) {
    case Opcode::kNegate:
      return NegLanes<R>;
    case Opcode::kSign:
      return SignLanes<R>;
    case Opcode::kAbs:
      return AbsLanes<R>;
    case Opcode::kReal:
      return PartLanes<R, 0>;
    case Opcode::kImag:
      return PartLanes<R, 1>;
    case Opcode::kCosine:
      return CosLanes<R>;
    case Opcode::kExponential:
      return ExpLanes<R>;
    case Opcode::kExponentialMinusOne:
      return Expm1Lanes<R>;
    case Opcode::kLog:
      return LogLanes<R>;
    case Opcode::kLogPlusOne:
      return Log1pLanes<R>;
    case Opcode::kLogistic:
      return LogisticLanes<R>;
    case Opcode::kRsqrt:
      return RsqrtLanes<R>;
    case Opcode::kSine:
      return SinLanes<R>;
    case Opcode::kSqrt:
      return SqrtLanes<R>;
    case Opcode::kTan:
      return TanLanes<R>;
    case Opcode::kTanh:
      return TanhLanes<R>;
    case Opcode::kAdd:
      return AddLanes<R>;
    case Opcode::kSubtract:
      return SubLanes<R>;
    case Opcode::kMultiply:
      return MulLanes<R>;
    case Opcode::kDivide:
      return DivLanes<R>;
    case Opcode::kPower:
      return PowLanes<R>;
    default:
      return nullptr;
  }
}

template <typename R>
LaneFn FindOnReal(Opcode opcode) {
  switch (opcode) {
    case Opcode::kReal:
      return RealOfReal<R>;
    case Opcode::kImag:
      return ImagOfReal<R>;
    case Opcode::kComplex:
      return MakeLanes<R>;
    default:
      return nullptr;
  }
}

}  // namespace

LaneFn FindComplexFn(Opcode opcode, ElementType type) {
  switch (type) {
    case ElementType::kC64:
      return Find<float>(opcode);
    case ElementType::kC128:
      return Find<double>(opcode);
    case ElementType::kF32:
      return FindOnReal<float>(opcode);
    case ElementType::kF64:
      return FindOnReal<double>(opcode);
    default:
      return nullptr;
  }
}

}  // namespace shardcall
