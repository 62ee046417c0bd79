// SPDX-License-Identifier: Apache-2.0
// Kernels of XLA's typed FFI for the tests of what forms a target may have, which compile this file
// as kernels.cc.
#include <algorithm>
#include <atomic>
#include <memory>

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

// y[i, j] = x[i, j] * w[j] if there is a w, else 2 * x[i, j]
ffi::Error Multi(ffi::RemainingArgs in, ffi::ResultBuffer<ffi::F32> y) {
  const auto x = in.get<F32>(0);
  if (!x.has_value()) return ffi::Error::InvalidArgument("no operand");
  const Rows r = RowsOf(*x);
  const float* w = in.size() > 1 ? in.get<F32>(1)->typed_data() : nullptr;
  for (int64_t k = 0; k < r.rows * r.columns; ++k) {
    y->typed_data()[k] = x->typed_data()[k] * (w == nullptr ? 2 : w[k % r.columns]);
  }
  return ffi::Error::Success();
}

// dx = dy * w and dw = the sum over rows of dy * x if there is a w, else dx = 2 * dy
ffi::Error MultiBwd(ffi::RemainingArgs in, ffi::RemainingRets out) {
  const auto dy = in.get<F32>(0), x = in.get<F32>(1);
  const Rows r = RowsOf(*dy);
  const float* w = in.size() > 2 ? in.get<F32>(2)->typed_data() : nullptr;
  float* dx = (*out.get<F32>(0))->typed_data();
  float* dw = out.size() > 1 ? (*out.get<F32>(1))->typed_data() : nullptr;
  for (int64_t c = 0; dw != nullptr && c < r.columns; ++c) dw[c] = 0;
  for (int64_t k = 0; k < r.rows * r.columns; ++k) {
    dx[k] = dy->typed_data()[k] * (w == nullptr ? 2 : w[k % r.columns]);
    if (dw != nullptr) dw[k % r.columns] += dy->typed_data()[k] * x->typed_data()[k];
  }
  return ffi::Error::Success();
}

// Adds up what it was called with, over all calls.
std::atomic<int64_t> total{0}, times_called{0};
ffi::Error Observe(F32 x) {
  int64_t sum = 0;
  for (size_t k = 0; k < x.element_count(); ++k) sum += static_cast<int64_t>(x.typed_data()[k]);
  total += sum;
  ++times_called;
  return ffi::Error::Success();
}

// y[b, k, g] = x[b, k, g] + w[b, k], where x has k and g as one dimension
ffi::Error Grouped(F32 x, F32 w, ffi::ResultBuffer<ffi::F32> y) {
  const int64_t group = x.element_count() / w.element_count();
  for (size_t k = 0; k < x.element_count(); ++k) {
    y->typed_data()[k] = x.typed_data()[k] + w.typed_data()[k / group];
  }
  return ffi::Error::Success();
}

// y[b, d] = table[ids[b], d]
ffi::Error Look(ffi::Buffer<ffi::S32> ids, F32 table, ffi::ResultBuffer<ffi::F32> y) {
  const int64_t d = table.dimensions()[1];
  for (size_t k = 0; k < y->element_count(); ++k) {
    y->typed_data()[k] = table.typed_data()[ids.typed_data()[k / d] * d + k % d];
  }
  return ffi::Error::Success();
}

// Number k of the buffer, in the order of its memory, is added to it.
ffi::Error Number(F32 x, ffi::ResultBuffer<ffi::F32> y) {
  const int64_t matrix =
      x.dimensions().size() > 2 ? x.dimensions()[1] * x.dimensions()[2] : x.element_count();
  for (size_t k = 0; k < x.element_count(); ++k) {
    y->typed_data()[k] = x.typed_data()[k] + static_cast<float>(k % matrix);
  }
  return ffi::Error::Success();
}

// y[i, j] = x[i, j] + w[j], in the memory of x
ffi::Error AddInPlace(F32 x, F32 w, ffi::ResultBuffer<ffi::F32> y) {
  if (x.typed_data() != y->typed_data()) return ffi::Error::Internal("the result is elsewhere");
  const Rows r = RowsOf(x);
  for (int64_t k = 0; k < r.rows * r.columns; ++k) {
    y->typed_data()[k] += w.typed_data()[k % r.columns];
  }
  return ffi::Error::Success();
}

// y = x, which is observed
ffi::Error PassOn(F32 x, ffi::ResultBuffer<ffi::F32> y) {
  std::copy_n(x.typed_data(), x.element_count(), y->typed_data());
  return Observe(x);
}

// A state that is made once for each call of a program.
struct Factor {
  static ffi::TypeId id;
  static ffi::TypeInfo info;
  float times;
};
ffi::TypeId Factor::id = {};
ffi::TypeInfo Factor::info = ffi::MakeTypeInfo<Factor>();
ffi::ErrorOr<std::unique_ptr<Factor>> MakeFactor(float times) {
  return std::make_unique<Factor>(Factor{times});
}
ffi::Error UseFactor(Factor* factor, F32 x, ffi::ResultBuffer<ffi::F32> y, float) {
  for (size_t k = 0; k < x.element_count(); ++k) {
    y->typed_data()[k] = factor->times * x.typed_data()[k];
  }
  return ffi::Error::Success();
}

}  // namespace

XLA_FFI_DEFINE_HANDLER_SYMBOL(multi, Multi, ffi::Ffi::Bind().RemainingArgs().Ret<F32>());
XLA_FFI_DEFINE_HANDLER_SYMBOL(multi_bwd, MultiBwd,
                              ffi::Ffi::Bind().RemainingArgs().RemainingRets());
XLA_FFI_DEFINE_HANDLER_SYMBOL(observe, Observe, ffi::Ffi::Bind().Arg<F32>());
XLA_FFI_DEFINE_HANDLER_SYMBOL(grouped, Grouped, ffi::Ffi::Bind().Arg<F32>().Arg<F32>().Ret<F32>());
XLA_FFI_DEFINE_HANDLER_SYMBOL(look, Look,
                              ffi::Ffi::Bind().Arg<ffi::Buffer<ffi::S32>>().Arg<F32>().Ret<F32>());
XLA_FFI_DEFINE_HANDLER_SYMBOL(number, Number, ffi::Ffi::Bind().Arg<F32>().Ret<F32>());
XLA_FFI_DEFINE_HANDLER_SYMBOL(add_in_place, AddInPlace,
                              ffi::Ffi::Bind().Arg<F32>().Arg<F32>().Ret<F32>());
XLA_FFI_DEFINE_HANDLER_SYMBOL(pass_on, PassOn, ffi::Ffi::Bind().Arg<F32>().Ret<F32>());
XLA_FFI_DEFINE_HANDLER_SYMBOL(make_factor, MakeFactor,
                              ffi::Ffi::BindInstantiate().Attr<float>("times"));
XLA_FFI_DEFINE_HANDLER_SYMBOL(
    use_factor, UseFactor,
    ffi::Ffi::Bind().Ctx<ffi::State<Factor>>().Arg<F32>().Ret<F32>().Attr<float>("times"));
extern "C" void* factor_id() { return &Factor::id; }
extern "C" void* factor_info() { return &Factor::info; }
extern "C" int64_t observed() { return total.exchange(0); }
extern "C" int64_t observations() { return times_called.exchange(0); }
