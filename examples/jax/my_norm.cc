// SPDX-License-Identifier: Apache-2.0
// A kernel of XLA's typed FFI: rows are divided by their largest magnitude and weighed.
//   y[.., d] = x[.., d] / max over d of |x[.., d]| * w[d]
#include <algorithm>
#include <cmath>

#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;
using Array = ffi::Buffer<ffi::F32>;

static ffi::Error Norm(Array x, Array w, ffi::ResultBuffer<ffi::F32> y) {
  const auto columns = static_cast<int64_t>(w.element_count());
  const auto rows = columns == 0 ? 0 : static_cast<int64_t>(x.element_count()) / columns;
  for (int64_t r = 0; r < rows; ++r) {
    const float* from = x.typed_data() + r * columns;
    float* to = y->typed_data() + r * columns;
    float largest = 0;
    for (int64_t d = 0; d < columns; ++d) largest = std::max(largest, std::fabs(from[d]));
    for (int64_t d = 0; d < columns; ++d) {
      to[d] = largest == 0 ? 0 : from[d] / largest * w.typed_data()[d];
    }
  }
  return ffi::Error::Success();
}

XLA_FFI_DEFINE_HANDLER_SYMBOL(my_norm, Norm,
                              ffi::Ffi::Bind().Arg<Array>().Arg<Array>().Ret<Array>());
