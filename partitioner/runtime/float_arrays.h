// SPDX-License-Identifier: Apache-2.0
// Whole tensors as f64 or complex numbers, for rare ops that are computed in the widest type and
// rounded once.
#ifndef SHARDCALL_PARTITIONER_RUNTIME_FLOAT_ARRAYS_H_
#define SHARDCALL_PARTITIONER_RUNTIME_FLOAT_ARRAYS_H_

#include <complex>
#include <vector>

#include "shardcall/partitioner/runtime/tensor.h"
#include "shardcall/sharding/narrow_float.h"

namespace shardcall {
inline namespace internal {

// `t` is of a float type.
inline std::vector<double> ToDoubles(const Tensor& t) {
  std::vector<double> x(t.num_elements());
  LoadFloats(t.type(), t.data(), t.num_elements(), x.data());
  return x;
}
inline Tensor FromDoubles(ElementType type, absl::Span<const int64_t> dims,
                          const std::vector<double>& x) {
  Tensor t(type, dims);
  StoreFloats(type, x.data(), t.num_elements(), t.MutableData());
  return t;
}

// `t` is of a float or complex type.
inline std::vector<std::complex<double>> ToComplexes(const Tensor& t) {
  std::vector<std::complex<double>> x(t.num_elements());
  if (t.type() == ElementType::kC64) {
    for (size_t i = 0; i < x.size(); ++i) x[i] = t.data<std::complex<float>>()[i];
  } else if (t.type() == ElementType::kC128) {
    for (size_t i = 0; i < x.size(); ++i) x[i] = t.data<std::complex<double>>()[i];
  } else {
    const std::vector<double> real = ToDoubles(t);
    for (size_t i = 0; i < x.size(); ++i) x[i] = real[i];
  }
  return x;
}
inline Tensor FromComplexes(ElementType type, absl::Span<const int64_t> dims,
                            const std::vector<std::complex<double>>& x) {
  if (!IsComplex(type)) {
    std::vector<double> real(x.size());
    for (size_t i = 0; i < x.size(); ++i) real[i] = x[i].real();
    return FromDoubles(type, dims, real);
  }
  Tensor t(type, dims);
  for (size_t i = 0; i < x.size(); ++i) {
    if (type == ElementType::kC64) {
      t.MutableData<std::complex<float>>()[i] = std::complex<float>(x[i]);
    } else {
      t.MutableData<std::complex<double>>()[i] = x[i];
    }
  }
  return t;
}

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_RUNTIME_FLOAT_ARRAYS_H_
