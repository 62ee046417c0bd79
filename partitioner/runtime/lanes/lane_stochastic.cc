// SPDX-License-Identifier: Apache-2.0
// Lane kernels of stochastic-convert to signed integers. The fraction of the magnitude, scaled to
// the width of the random number, is compared with the random number; if it is larger, the
// magnitude is rounded up. Saturates; NaN becomes 0.
#include <cmath>
#include <cstdint>

#include "shardcall/partitioner/runtime/lanes/lane_kernel.h"

namespace shardcall {
inline namespace internal {
namespace {

// params: bits of the random number, bits of the result.
template <typename F, typename Random, typename To>
void StochasticConvert(const void* const* in, void* out, int64_t n, const int64_t* params) {
  const F* a = static_cast<const F*>(in[0]);
  const Random* random = static_cast<const Random*>(in[1]);
  To* o = static_cast<To*>(out);
  const F scale = std::ldexp(F{1}, static_cast<int>(params[0]));
  const int64_t max = static_cast<int64_t>((uint64_t{1} << (params[1] - 1)) - 1);
  const int64_t min = -max - 1;
  const F past = std::ldexp(F{1}, static_cast<int>(params[1]) - 1);  // max + 1, exactly
  for (int64_t i = 0; i < n; ++i) {
    const F magnitude = std::fabs(a[i]);
    const bool negative = std::signbit(a[i]);
    if (!(magnitude < past)) {  // also true for NaN
      o[i] = static_cast<To>(std::isnan(magnitude) ? 0 : (negative ? min : max));
      continue;
    }
    int64_t whole = static_cast<int64_t>(magnitude);
    const F fraction = (magnitude - static_cast<F>(whole)) * scale;  // below 2^params[0]
    if (random[i] < static_cast<Random>(fraction)) {
      if (whole == max) {
        o[i] = static_cast<To>(negative ? min : max);
        continue;
      }
      ++whole;
    }
    o[i] = static_cast<To>(negative ? -whole : whole);
  }
}

template <typename F, typename Random>
LaneFn FindTo(int result_bytes) {
  switch (result_bytes) {
    case 1: return StochasticConvert<F, Random, int8_t>;
    case 2: return StochasticConvert<F, Random, int16_t>;
    case 4: return StochasticConvert<F, Random, int32_t>;
    case 8: return StochasticConvert<F, Random, int64_t>;
    default: return nullptr;
  }
}

}  // namespace

LaneFn FindStochasticConvertFn(ElementType from, ElementType random, ElementType to) {
  if (!IsFloat(from) || !IsUnsignedInteger(random) || !IsSignedInteger(to)) return nullptr;
  const int bytes = ElementTypeBytes(to);
  switch (random) {
    case ElementType::kU64:
      return from == ElementType::kF64 ? FindTo<double, uint64_t>(bytes) : nullptr;
    case ElementType::kU32:
      return from == ElementType::kF32 ? FindTo<float, uint32_t>(bytes) : nullptr;
    case ElementType::kU16: return IsNarrow(from) ? FindTo<float, uint16_t>(bytes) : nullptr;
    default: return IsNarrow(from) ? FindTo<float, uint8_t>(bytes) : nullptr;
  }
}

}  // namespace internal
}  // namespace shardcall
