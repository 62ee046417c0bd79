// SPDX-License-Identifier: Apache-2.0
// Lane kernels of real functions on f32 and f64. Frequent ones on f32 are from vector_math.h, the
// others from libm.
#include <cmath>
#include <cstdint>

#include "shardcall/partitioner/ir/row_by_opcode.h"
#include "shardcall/partitioner/runtime/lanes/isa.h"
#include "shardcall/partitioner/runtime/lanes/lane_kernel.h"
#include "shardcall/partitioner/runtime/lanes/vector_math.h"

namespace shardcall {
inline namespace internal {
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
    SHARDCALL_LANES                                                        \
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

// f32 functions of vector_math.h.
template <auto kFn>
void VectorLanes(const void* const* in, void* out, int64_t n, const int64_t*) {
  const float* a = static_cast<const float*>(in[0]);
  float* o = static_cast<float*>(out);
  SHARDCALL_LANES
  for (int64_t i = 0; i < n; ++i) o[i] = kFn(a[i]);
}

// kSlow computes arguments that are too large for kFn, infinity and NaN.
template <auto kFn, auto kSlow>
void TrigLanes(const void* const* in, void* out, int64_t n, const int64_t*) {
  constexpr int64_t kBlock = 256;
  const float* a = static_cast<const float*>(in[0]);
  float* o = static_cast<float*>(out);
  float y[kBlock];
  for (int64_t begin = 0; begin < n; begin += kBlock) {
    const int64_t count = n - begin < kBlock ? n - begin : kBlock;
    int far = 0;
    for (int64_t i = 0; i < count; ++i) {
      y[i] = kFn(a[begin + i]);
      far |= !(std::fabs(a[begin + i]) <= vector_math::kTrigLimit);
    }
    for (int64_t i = 0; far != 0 && i < count; ++i) {
      if (!(std::fabs(a[begin + i]) <= vector_math::kTrigLimit)) y[i] = kSlow(a[begin + i]);
    }
    for (int64_t i = 0; i < count; ++i) o[begin + i] = y[i];
  }
}
float SlowSin(float x) { return std::sin(x); }
float SlowCos(float x) { return std::cos(x); }

struct Row {
  Opcode opcode;
  LaneFn (*best)();  // for the processor
};
constexpr Row kVectorRows[] = {
    {Opcode::kCosine, BestWideForCpu<TrigLanes<vector_math::Cos, SlowCos>>},
    {Opcode::kErf, BestWideForCpu<VectorLanes<vector_math::Erf>>},
    {Opcode::kExponential, BestWideForCpu<VectorLanes<vector_math::Exp>>},
    {Opcode::kExponentialMinusOne, BestWideForCpu<VectorLanes<vector_math::Expm1>>},
    {Opcode::kLog, BestWideForCpu<VectorLanes<vector_math::Log>>},
    {Opcode::kLogPlusOne, BestWideForCpu<VectorLanes<vector_math::Log1p>>},
    {Opcode::kLogistic, BestWideForCpu<VectorLanes<vector_math::Logistic>>},
    {Opcode::kSine, BestWideForCpu<TrigLanes<vector_math::Sin, SlowSin>>},
    {Opcode::kTanh, BestWideForCpu<VectorLanes<vector_math::Tanh>>},
};

template <typename T>
constexpr Row kRows[] = {
    {Opcode::kAcos, BestForCpu<AcosLanes<T>>},
    {Opcode::kAcosh, BestForCpu<AcoshLanes<T>>},
    {Opcode::kAsin, BestForCpu<AsinLanes<T>>},
    {Opcode::kAsinh, BestForCpu<AsinhLanes<T>>},
    {Opcode::kAtanh, BestForCpu<AtanhLanes<T>>},
    {Opcode::kCbrt, BestForCpu<CbrtLanes<T>>},
    {Opcode::kCosine, BestForCpu<CosLanes<T>>},
    {Opcode::kCosh, BestForCpu<CoshLanes<T>>},
    {Opcode::kErf, BestForCpu<ErfLanes<T>>},
    {Opcode::kExponential, BestForCpu<ExpLanes<T>>},
    {Opcode::kExponentialMinusOne, BestForCpu<Expm1Lanes<T>>},
    {Opcode::kLog, BestForCpu<LogLanes<T>>},
    {Opcode::kLogPlusOne, BestForCpu<Log1pLanes<T>>},
    {Opcode::kLogistic, BestForCpu<LogisticLanes<T>>},
    {Opcode::kRsqrt, BestForCpu<RsqrtLanes<T>>},
    {Opcode::kSine, BestForCpu<SinLanes<T>>},
    {Opcode::kSinh, BestForCpu<SinhLanes<T>>},
    {Opcode::kSqrt, BestForCpu<SqrtLanes<T>>},
    {Opcode::kTan, BestForCpu<TanLanes<T>>},
    {Opcode::kTanh, BestForCpu<TanhLanes<T>>},
    {Opcode::kCeil, BestForCpu<CeilLanes<T>>},
    {Opcode::kFloor, BestForCpu<FloorLanes<T>>},
    {Opcode::kRoundNearestAfz, BestForCpu<RoundAwayLanes<T>>},
    {Opcode::kRoundNearestEven, BestForCpu<RoundEvenLanes<T>>},
    {Opcode::kAtan2, BestForCpu<Atan2Lanes<T>>},
    {Opcode::kIsFinite, BestForCpu<IsFiniteLanes<T>>},
};

template <size_t N>
LaneFn Find(const Row (&rows)[N], Opcode opcode) {
  const Row* const row = RowByOpcode(rows, opcode);
  return row == nullptr ? nullptr : row->best();
}

}  // namespace

LaneFn FindFloatFn(Opcode opcode, ElementType type) {
  if (type == ElementType::kF32) {
    const LaneFn vector = Find(kVectorRows, opcode);
    return vector != nullptr ? vector : Find(kRows<float>, opcode);
  }
  if (type == ElementType::kF64) return Find(kRows<double>, opcode);
  return nullptr;
}

}  // namespace internal
}  // namespace shardcall
