// SPDX-License-Identifier: Apache-2.0
// Sums along a row in an order that depends only on the row's length.
#ifndef SHARDCALL_KERNELS_MATH_ROW_SUMS_H_
#define SHARDCALL_KERNELS_MATH_ROW_SUMS_H_

#include <cstdint>

namespace shardcall {
inline namespace internal {

// The sum of a[i] * b[i], in f64 over eight lanes.
template <typename T>
double RowDot(const T* a, const T* b, int64_t n) {
  double lane[8] = {};
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    for (int l = 0; l < 8; ++l) lane[l] += static_cast<double>(a[i + l]) * b[i + l];
  }
  for (; i < n; ++i) lane[i % 8] += static_cast<double>(a[i]) * b[i];
  return ((lane[0] + lane[1]) + (lane[2] + lane[3])) + ((lane[4] + lane[5]) + (lane[6] + lane[7]));
}

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_KERNELS_MATH_ROW_SUMS_H_
