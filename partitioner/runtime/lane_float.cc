// SPDX-License-Identifier: Apache-2.0
// Lane kernels of real functions on f32 and f64.
#include <cmath>
#include <cstdint>

#include "partitioner/runtime/lane_kernel.h"

namespace shardcall {
namespace {

template <typename T>
T Logistic(T x) {
  return T{1} / (T{1} + std::exp(-x));
}
template <typename T>
T Rsqrt(T x) {
  return T{1} / std::sqrt(x);
}

#define SHARDCALL_UNARY(Name, expr)                                        \
  template <typename T>                                                    \
  void Name(const void* const* in, void* out, int64_t n, const int64_t*) { \
    const T* a = static_cast<const T*>(in[0]);                             \
    T* o = static_cast<T*>(out);                                           \
    for (int64_t i = 0; i < n; ++i) {                                      \
      const T x = a[i];                                                    \
      o[i] = (expr);                                                       \
    }                                                                      \
  }
SHARDCALL_UNARY(AcosLanes, std::acos(x))
SHARDCALL_UNARY(AcoshLanes, std::acosh(x))
SHARDCALL_UNARY(AsinLanes, std::asin(x))
SHARDCALL_UNARY(AsinhLanes, std::asinh(x))
SHARDCALL_UNARY(AtanhLanes, std::atanh(x))
SHARDCALL_UNARY(CbrtLanes, std::cbrt(x))
SHARDCALL_UNARY(CosLanes, std::cos(x))
SHARDCALL_UNARY(CoshLanes, std::cosh(x))
SHARDCALL_UNARY(ErfLanes, std::erf(x))
SHARDCALL_UNARY(ExpLanes, std::exp(x))
SHARDCALL_UNARY(Expm1Lanes, std::expm1(x))
SHARDCALL_UNARY(LogLanes, std::log(x))
SHARDCALL_UNARY(Log1pLanes, std::log1p(x))
SHARDCALL_UNARY(LogisticLanes, Logistic(x))
SHARDCALL_UNARY(RsqrtLanes, Rsqrt(x))
SHARDCALL_UNARY(SinLanes, std::sin(x))
SHARDCALL_UNARY(SinhLanes, std::sinh(x))
SHARDCALL_UNARY(SqrtLanes, std::sqrt(x))
SHARDCALL_UNARY(TanLanes, std::tan(x))
SHARDCALL_UNARY(TanhLanes, std::tanh(x))
SHARDCALL_UNARY(CeilLanes, std::ceil(x))
SHARDCALL_UNARY(FloorLanes, std::floor(x))
SHARDCALL_UNARY(RoundAwayLanes, std::round(x))
SHARDCALL_UNARY(RoundEvenLanes, std::nearbyint(x))
#undef SHARDCALL_UNARY

template <typename T>
void Atan2Lanes(const void* const* in, void* out, int64_t n, const int64_t*) {
  const T* a = static_cast<const T*>(in[0]);
  const T* b = static_cast<const T*>(in[1]);
  T* o = static_cast<T*>(out);
  for (int64_t i = 0; i < n; ++i) o[i] = std::atan2(a[i], b[i]);
}

template <typename T>
void IsFiniteLanes(const void* const* in, void* out, int64_t n, const int64_t*) {
  const T* a = static_cast<const T*>(in[0]);
  uint8_t* o = static_cast<uint8_t*>(out);
  for (int64_t i = 0; i < n; ++i) o[i] = std::isfinite(a[i]);
}

template <typename T>
LaneFn Find(Opcode opcode) {
  switch (opcode) {
    case Opcode::kAcos:
      return AcosLanes<T>;
    case Opcode::kAcosh:
      return AcoshLanes<T>;
    case Opcode::kAsin:
      return AsinLanes<T>;
    case Opcode::kAsinh:
      return AsinhLanes<T>;
    case Opcode::kAtanh:
      return AtanhLanes<T>;
    case Opcode::kCbrt:
      return CbrtLanes<T>;
    case Opcode::kCosine:
      return CosLanes<T>;
    case Opcode::kCosh:
      return CoshLanes<T>;
    case Opcode::kErf:
      return ErfLanes<T>;
    case Opcode::kExponential:
      return ExpLanes<T>;
    case Opcode::kExponentialMinusOne:
      return Expm1Lanes<T>;
    case Opcode::kLog:
      return LogLanes<T>;
    case Opcode::kLogPlusOne:
      return Log1pLanes<T>;
    case Opcode::kLogistic:
      return LogisticLanes<T>;
    case Opcode::kRsqrt:
      return RsqrtLanes<T>;
    case Opcode::kSine:
      return SinLanes<T>;
    case Opcode::kSinh:
      return SinhLanes<T>;
    case Opcode::kSqrt:
      return SqrtLanes<T>;
    case Opcode::kTan:
      return TanLanes<T>;
    case Opcode::kTanh:
      return TanhLanes<T>;
    case Opcode::kCeil:
      return CeilLanes<T>;
    case Opcode::kFloor:
      return FloorLanes<T>;
    case Opcode::kRoundNearestAfz:
      return RoundAwayLanes<T>;
    case Opcode::kRoundNearestEven:
      return RoundEvenLanes<T>;
    case Opcode::kAtan2:
      return Atan2Lanes<T>;
    case Opcode::kIsFinite:
      return IsFiniteLanes<T>;
    default:
      return nullptr;
  }
}

}  // namespace

LaneFn FindFloatFn(Opcode opcode, ElementType type) {
  if (type == ElementType::kF32) return Find<float>(opcode);
  if (type == ElementType::kF64) return Find<double>(opcode);
  return nullptr;
}

}  // namespace shardcall
