// SPDX-License-Identifier: Apache-2.0
// Kernels of XLA's typed FFI that communicate, for the tests in Python.
#include <algorithm>
#include <string>
#include <string_view>

#include "../../../../kernels/ffi/shardcall_ffi.h"
#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;
using F32 = ffi::Buffer<ffi::F32>;

namespace {

struct Device : Shardcall_FfiDevice {
  static ffi::TypeId id;
};
ffi::TypeId Device::id = {SHARDCALL_FFI_DEVICE};

// y = the sum of x over the devices along a mesh axis, as often as `times` says.
ffi::Error SumOver(Device* device, F32 x, ffi::ResultBuffer<ffi::F32> y, std::string_view axis,
                   int64_t times) {
  const std::string name(axis);
  int32_t group[64];
  const int32_t size = device->devices_along(device, name.c_str(), group, 64);
  if (size < 1) return ffi::Error::InvalidArgument("no such axis: " + name);
  std::copy(x.typed_data(), x.typed_data() + x.element_count(), y->typed_data());
  for (int64_t k = 0; k < times; ++k) {
    const int32_t failed =
        device->all_reduce(device, group, size, SHARDCALL_FFI_SUM, /*type=*/11, y->typed_data(),
                           y->typed_data(), static_cast<int64_t>(y->element_count()));
    if (failed != 0) return ffi::Error::Internal(device->message(device));
  }
  return ffi::Error::Success();
}

}  // namespace

XLA_FFI_DEFINE_HANDLER_SYMBOL(sum_over, SumOver,
                              ffi::Ffi::Bind()
                                  .Ctx<ffi::UserData<Device>>()
                                  .Arg<F32>()
                                  .Ret<F32>()
                                  .Attr<std::string_view>("axis")
                                  .Attr<int64_t>("times"));
