// SPDX-License-Identifier: Apache-2.0
// Kernels of XLA's typed FFI for the tests in Python, which compile this file against the
// headers of the jaxlib that they run.
#include <atomic>

#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;
using F32 = ffi::Buffer<ffi::F32>;

namespace {

struct Rows {
  int64_t rows = 1, columns = 1;
};
Rows RowsOf(const F32& x) {
  Rows r;
  const auto dims = x.dimensions();
  for (size_t k = 0; k + 1 < dims.size(); ++k) r.rows *= dims[k];
  if (dims.size() > 0) r.columns = dims.back();
  return r;
}

// y[.., d] = times * x[.., d] * w[d]
ffi::Error Weigh(F32 x, F32 w, ffi::ResultBuffer<ffi::F32> y, float times) {
  const Rows r = RowsOf(x);
  if (w.element_count() != static_cast<size_t>(r.columns)) {
    return ffi::Error::InvalidArgument("the weights are not as many as the columns");
  }
  for (int64_t k = 0; k < r.rows * r.columns; ++k) {
    y->typed_data()[k] = times * x.typed_data()[k] * w.typed_data()[k % r.columns];
  }
  return ffi::Error::Success();
}

// dx = times * dy * w, dw = times * the sum over rows of dy * x
ffi::Error WeighBwd(F32 dy, F32 x, F32 w, ffi::ResultBuffer<ffi::F32> dx,
                    ffi::ResultBuffer<ffi::F32> dw, float times) {
  const Rows r = RowsOf(x);
  for (int64_t c = 0; c < r.columns; ++c) dw->typed_data()[c] = 0;
  for (int64_t k = 0; k < r.rows * r.columns; ++k) {
    dx->typed_data()[k] = times * dy.typed_data()[k] * w.typed_data()[k % r.columns];
    dw->typed_data()[k % r.columns] += times * dy.typed_data()[k] * x.typed_data()[k];
  }
  return ffi::Error::Success();
}

// y[m] = the sum of x[m, k] over k
ffi::Error RowSum(F32 x, ffi::ResultBuffer<ffi::F32> y) {
  const Rows r = RowsOf(x);
  for (int64_t k = 0; k < r.rows; ++k) {
    y->typed_data()[k] = 0;
    for (int64_t c = 0; c < r.columns; ++c) y->typed_data()[k] += x.typed_data()[k * r.columns + c];
  }
  return ffi::Error::Success();
}

// y[r, c] = x[r, C - 1 - c] of elements of 2 and 4 bits, which XLA packs.
ffi::Error ReverseRows(ffi::AnyBuffer x, ffi::Result<ffi::AnyBuffer> y) {
  const int64_t rows = x.dimensions()[0], columns = x.dimensions()[1];
  int bits = 0;
  switch (x.element_type()) {
    case ffi::S4:
    case ffi::U4:
    case ffi::F4E2M1FN: bits = 4; break;
    case static_cast<ffi::DataType>(26):
    case static_cast<ffi::DataType>(27): bits = 2; break;  // S2 and U2, in newer headers
    default: return ffi::Error::InvalidArgument("elements of 2 or 4 bits");
  }
  const int64_t in_byte = 8 / bits, mask = (1 << bits) - 1;
  const auto* from = static_cast<const unsigned char*>(x.untyped_data());
  auto* to = static_cast<unsigned char*>(y->untyped_data());
  for (int64_t k = 0; k < (rows * columns + in_byte - 1) / in_byte; ++k) to[k] = 0;
  for (int64_t k = 0; k < rows * columns; ++k) {
    const int64_t j = k / columns * columns + columns - 1 - k % columns;
    to[k / in_byte] |= (from[j / in_byte] >> (j % in_byte * bits) & mask) << (k % in_byte * bits);
  }
  return ffi::Error::Success();
}

// y[m, n] = x[m, n] + x[m, 0], by columns.
ffi::Error Columns(F32 x, ffi::ResultBuffer<ffi::F32> y) {
  const Rows r = RowsOf(x);
  for (int64_t k = 0; k < r.rows * r.columns; ++k) {
    const int64_t row = k / r.columns;
    y->typed_data()[k % r.columns * r.rows + row] =
        x.typed_data()[k] + x.typed_data()[row * r.columns];
  }
  return ffi::Error::Success();
}

// x += 1, in the operand's buffer, which must be that of the result.
ffi::Error Increment(F32 x, ffi::ResultBuffer<ffi::F32> y) {
  if (x.element_count() > 0 && x.untyped_data() != y->untyped_data()) {
    return ffi::Error::InvalidArgument("the result must be in place");
  }
  for (size_t k = 0; k < x.element_count(); ++k) x.typed_data()[k] += 1;
  return ffi::Error::Success();
}

// The first result is x. Another one is scratch: half of it holds the number of the call.
ffi::Error Noted(ffi::RemainingArgs x, ffi::RemainingRets y) {
  static std::atomic<int> calls = 0;
  const float number = static_cast<float>(++calls);
  const F32 from = *x.get<F32>(0);
  for (size_t k = 0; k < from.element_count(); ++k) {
    (*y.get<F32>(0))->typed_data()[k] = from.typed_data()[k];
    if (y.size() > 1 && k % 2 == 0) (*y.get<F32>(1))->typed_data()[k] = number;
  }
  return ffi::Error::Success();
}

// y = 2 x in `grid` blocks of 4 rows; an error for another grid than that of its rows.
ffi::Error Blocks(F32 x, ffi::ResultBuffer<ffi::F32> y, int32_t grid) {
  const Rows r = RowsOf(x);
  if (grid != (r.rows + 3) / 4) return ffi::Error::InvalidArgument("another grid than its rows");
  for (int64_t k = 0; k < r.rows * r.columns; ++k) y->typed_data()[k] = 2 * x.typed_data()[k];
  return ffi::Error::Success();
}

// y = x + seed
ffi::Error Seeded(F32 x, ffi::ResultBuffer<ffi::F32> y, int32_t seed) {
  for (size_t k = 0; k < x.element_count(); ++k) {
    y->typed_data()[k] = x.typed_data()[k] + static_cast<float>(seed);
  }
  return ffi::Error::Success();
}

// dx[m, n] = dy[m]
ffi::Error LineSumsBwd(F32 dy, F32 x, ffi::ResultBuffer<ffi::F32> dx) {
  const Rows r = RowsOf(x);
  for (int64_t k = 0; k < r.rows * r.columns; ++k) {
    dx->typed_data()[k] = dy.typed_data()[k / r.columns];
  }
  return ffi::Error::Success();
}

}  // namespace

XLA_FFI_DEFINE_HANDLER_SYMBOL(columns, Columns, ffi::Ffi::Bind().Arg<F32>().Ret<F32>());
XLA_FFI_DEFINE_HANDLER_SYMBOL(increment, Increment, ffi::Ffi::Bind().Arg<F32>().Ret<F32>());
XLA_FFI_DEFINE_HANDLER_SYMBOL(noted, Noted, ffi::Ffi::Bind().RemainingArgs().RemainingRets());
XLA_FFI_DEFINE_HANDLER_SYMBOL(blocks, Blocks,
                              ffi::Ffi::Bind().Arg<F32>().Ret<F32>().Attr<int32_t>("grid"));
XLA_FFI_DEFINE_HANDLER_SYMBOL(seeded, Seeded,
                              ffi::Ffi::Bind().Arg<F32>().Ret<F32>().Attr<int32_t>("seed"));
XLA_FFI_DEFINE_HANDLER_SYMBOL(line_sums, RowSum, ffi::Ffi::Bind().Arg<F32>().Ret<F32>());
XLA_FFI_DEFINE_HANDLER_SYMBOL(line_sums_bwd, LineSumsBwd,
                              ffi::Ffi::Bind().Arg<F32>().Arg<F32>().Ret<F32>());
XLA_FFI_DEFINE_HANDLER_SYMBOL(reverse_rows, ReverseRows,
                              ffi::Ffi::Bind().Arg<ffi::AnyBuffer>().Ret<ffi::AnyBuffer>());
XLA_FFI_DEFINE_HANDLER_SYMBOL(
    weigh, Weigh, ffi::Ffi::Bind().Arg<F32>().Arg<F32>().Ret<F32>().Attr<float>("times"));
XLA_FFI_DEFINE_HANDLER_SYMBOL(
    weigh_bwd, WeighBwd,
    ffi::Ffi::Bind().Arg<F32>().Arg<F32>().Arg<F32>().Ret<F32>().Ret<F32>().Attr<float>("times"));
XLA_FFI_DEFINE_HANDLER_SYMBOL(row_sum, RowSum, ffi::Ffi::Bind().Arg<F32>().Ret<F32>());

// Untyped, as custom calls were before.
extern "C" void subtract(void* out, const void** in) {
  *static_cast<float*>(out) = *static_cast<const float*>(in[0]) - *static_cast<const float*>(in[1]);
}
