// SPDX-License-Identifier: Apache-2.0
// IEEE 754-2019's maximum and minimum, as HLO's ops have them: NaN if one value is NaN, and
// -0 < +0. So a reduction gives the same bits in whatever order its values come.
#ifndef SHARDCALL_SHARDING_BASE_FLOAT_EXTREMA_H_
#define SHARDCALL_SHARDING_BASE_FLOAT_EXTREMA_H_

#include <bit>
#include <cstdint>
#include <type_traits>

namespace shardcall {
inline namespace internal {

template <typename T>
using FloatBits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;

template <typename T>
T FloatMaximum(T a, T b) {
  // Equal values can differ only in the sign of zero.
  const T same = std::bit_cast<T>(std::bit_cast<FloatBits<T>>(a) & std::bit_cast<FloatBits<T>>(b));
  const T tie = a == b ? same : a + b;  // a + b: one is NaN
  return a > b ? a : (a < b ? b : tie);
}

template <typename T>
T FloatMinimum(T a, T b) {
  const T same = std::bit_cast<T>(std::bit_cast<FloatBits<T>>(a) | std::bit_cast<FloatBits<T>>(b));
  const T tie = a == b ? same : a + b;
  return a < b ? a : (a > b ? b : tie);
}

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_SHARDING_BASE_FLOAT_EXTREMA_H_
