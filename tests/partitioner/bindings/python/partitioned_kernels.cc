// SPDX-License-Identifier: Apache-2.0
// Kernels of XLA's typed FFI whose calls are partitioned by functions in Python, for the tests.
#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;
using F32 = ffi::Buffer<ffi::F32>;

namespace {

// y = x / n
ffi::Error Divide(F32 x, ffi::ResultBuffer<ffi::F32> y, int64_t n) {
  for (size_t k = 0; k < x.element_count(); ++k) {
    y->typed_data()[k] = x.typed_data()[k] / static_cast<float>(n);
  }
  return ffi::Error::Success();
}

// y[k] = x[k] + x[k + 1] + x[k + 2]
ffi::Error Window(F32 x, ffi::ResultBuffer<ffi::F32> y) {
  if (x.element_count() != y->element_count() + 2) {
    return ffi::Error::InvalidArgument("the window does not fit");
  }
  for (size_t k = 0; k < y->element_count(); ++k) {
    const float* const at = x.typed_data() + k;
    y->typed_data()[k] = at[0] + at[1] + at[2];
  }
  return ffi::Error::Success();
}

// Adds one to x, which y is.
ffi::Error Increment(F32 x, ffi::ResultBuffer<ffi::F32> y) {
  if (x.typed_data() != y->typed_data()) return ffi::Error::Internal("x and y are two buffers");
  for (size_t k = 0; k < x.element_count(); ++k) y->typed_data()[k] += 1;
  return ffi::Error::Success();
}

}  // namespace

XLA_FFI_DEFINE_HANDLER_SYMBOL(divide, Divide,
                              ffi::Ffi::Bind().Arg<F32>().Ret<F32>().Attr<int64_t>("n"));
XLA_FFI_DEFINE_HANDLER_SYMBOL(window, Window, ffi::Ffi::Bind().Arg<F32>().Ret<F32>());
XLA_FFI_DEFINE_HANDLER_SYMBOL(increment, Increment, ffi::Ffi::Bind().Arg<F32>().Ret<F32>());
