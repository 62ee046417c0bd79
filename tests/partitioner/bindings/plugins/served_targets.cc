// SPDX-License-Identifier: Apache-2.0
// Handlers that a live XLA runs while this library partitions their calls.
#include <string>

#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;
using Matrix = ffi::BufferR2<ffi::F32>;

// Rows of x over their sums.
static ffi::Error Normalize(Matrix x, ffi::Result<Matrix> y) {
  const int64_t rows = x.dimensions()[0], columns = x.dimensions()[1];
  for (int64_t i = 0; i < rows; ++i) {
    float sum = 0;
    for (int64_t j = 0; j < columns; ++j) sum += x.typed_data()[i * columns + j];
    for (int64_t j = 0; j < columns; ++j) {
      y->typed_data()[i * columns + j] = x.typed_data()[i * columns + j] / sum;
    }
  }
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(NormalizeHandler, Normalize,
                              ffi::Ffi::Bind().Arg<Matrix>().Ret<Matrix>());

// scale * x w, and the largest element of each row.
static ffi::Error Weigh(Matrix x, ffi::BufferR1<ffi::F32> w, ffi::ResultBufferR1<ffi::F32> y,
                        float scale) {
  const int64_t rows = x.dimensions()[0], columns = x.dimensions()[1];
  if (static_cast<int64_t>(w.dimensions()[0]) != columns) {
    return ffi::Error::InvalidArgument("w has " + std::to_string(w.dimensions()[0]) + " elements");
  }
  for (int64_t i = 0; i < rows; ++i) {
    float sum = 0;
    for (int64_t j = 0; j < columns; ++j) {
      sum += x.typed_data()[i * columns + j] * w.typed_data()[j];
    }
    y->typed_data()[i] = scale * sum;
  }
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(WeighHandler, Weigh,
                              ffi::Ffi::Bind()
                                  .Arg<Matrix>()
                                  .Arg<ffi::BufferR1<ffi::F32>>()
                                  .Ret<ffi::BufferR1<ffi::F32>>()
                                  .Attr<float>("scale"));
