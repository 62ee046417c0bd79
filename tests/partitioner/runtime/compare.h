// SPDX-License-Identifier: Apache-2.0
// How far a tensor is from another.
#ifndef SHARDCALL_TESTS_PARTITIONER_RUNTIME_COMPARE_H_
#define SHARDCALL_TESTS_PARTITIONER_RUNTIME_COMPARE_H_

#include <algorithm>
#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/runtime/float_arrays.h"
#include "shardcall/partitioner/runtime/tensor.h"

namespace shardcall {

// Empty if `got` is within `tolerance` of the largest finite absolute value of
// `want` everywhere (0: bitwise, but for the payloads of NaN), else what is wrong.
inline std::string Difference(const Tensor& got, const Tensor& want, double tolerance) {
  if (got.type() != want.type() || got.dims() != want.dims()) {
    return absl::StrCat(TypeAndDims(got), " where ", TypeAndDims(want), " is expected");
  }
  if (BitwiseEqual(got, want)) return "";
  if (!IsFloat(got.type()) && !IsComplex(got.type())) {
    int64_t differ = 0;
    for (int64_t i = 0; i < got.byte_size(); ++i) differ += got.data()[i] != want.data()[i];
    return absl::StrCat(differ, " bytes differ in ", TypeAndDims(got));
  }
  const auto a = ToComplexes(got), b = ToComplexes(want);
  double largest = 0, worst = 0;
  size_t at = 0;
  bool zeros_differ = false;
  auto part = [&](double x, double y, size_t i) {
    if (std::isfinite(y)) largest = std::max(largest, std::abs(y));
    zeros_differ = zeros_differ || (x == 0 && y == 0 && std::signbit(x) != std::signbit(y));
    if (x == y || (std::isnan(x) && std::isnan(y))) return;
    const double d = std::isfinite(x) && std::isfinite(y) ? std::abs(x - y) : INFINITY;
    if (d > worst) {
      worst = d;
      at = i;
    }
  };
  for (size_t i = 0; i < a.size(); ++i) {
    part(a[i].real(), b[i].real(), i);
    part(a[i].imag(), b[i].imag(), i);
  }
  if (worst == 0 && tolerance == 0 && zeros_differ) {
    return absl::StrCat("zeros of other signs in ", TypeAndDims(got));
  }
  if (worst <= tolerance * largest) return "";  // NaN payloads aside
  return absl::StrCat("largest difference ", worst, " at ", at, " (", a[at].real(), " for ",
                      b[at].real(), ") of largest value ", largest, " in ", TypeAndDims(got));
}

}  // namespace shardcall

#endif  // SHARDCALL_TESTS_PARTITIONER_RUNTIME_COMPARE_H_
