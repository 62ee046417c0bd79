// SPDX-License-Identifier: Apache-2.0
// A library that registers its handlers and types itself, as authors write it with XLA's
// own C++ FFI headers and nothing of shardcall. Compiled against every version of the
// headers; run_self_registering.py runs it.
#include <atomic>
#include <cstdint>
#include <memory>

#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;

#if XLA_FFI_API_MINOR < 3
namespace xla::ffi {
const XLA_FFI_Api* GetXlaFfiApi();  // the public headers have it from 0.3 on
}
#endif

static ffi::Error Axpy(float a, ffi::Buffer<ffi::F32> x, ffi::Buffer<ffi::F32> y,
                       ffi::ResultBuffer<ffi::F32> out) {
  for (size_t i = 0; i < x.element_count(); ++i) {
    out->typed_data()[i] = a * x.typed_data()[i] + y.typed_data()[i];
  }
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER(kAxpy, Axpy,
                       ffi::Ffi::Bind()
                           .Attr<float>("a")
                           .Arg<ffi::Buffer<ffi::F32>>()
                           .Arg<ffi::Buffer<ffi::F32>>()
                           .Ret<ffi::Buffer<ffi::F32>>());
XLA_FFI_REGISTER_HANDLER(XLA_FFI_GetApi(), "xla_axpy", "Host", kAxpy,
                         XLA_FFI_HANDLER_TRAITS_COMMAND_BUFFER_COMPATIBLE);
XLA_FFI_REGISTER_HANDLER(ffi::GetXlaFfiApi(), "xla_axpy", "Abacus", kAxpy);

// Adds what instantiate was told, once the other stages have been there.
struct Offset {
  static ffi::TypeId id;
  explicit Offset(float v) : value(v) {}
  const float value;
  std::atomic<int> prepared{0}, initialized{0};
};
ffi::TypeId Offset::id = {};
#if XLA_FFI_API_MINOR < 2
XLA_FFI_REGISTER_TYPE(XLA_FFI_GetApi(), "xla_self_registering.Offset", &Offset::id);
#else
XLA_FFI_REGISTER_TYPE(XLA_FFI_GetApi(), "xla_self_registering.Offset", &Offset::id,
                      ffi::MakeTypeInfo<Offset>());
#endif

static ffi::ErrorOr<std::unique_ptr<Offset>> Make(float offset) {
  return std::make_unique<Offset>(offset);
}
static ffi::Error Prepare(Offset* o, float, ffi::Buffer<ffi::F32>, ffi::ResultBuffer<ffi::F32>) {
  ++o->prepared;
  return ffi::Error::Success();
}
static ffi::Error Initialize(Offset* o, float, ffi::Buffer<ffi::F32>, ffi::ResultBuffer<ffi::F32>) {
  ++o->initialized;
  return ffi::Error::Success();
}
static ffi::Error Add(Offset* o, float, ffi::Buffer<ffi::F32> x, ffi::ResultBuffer<ffi::F32> out) {
  if (o->prepared == 0 || o->initialized == 0) return ffi::Error::Internal("a stage is missing");
  for (size_t i = 0; i < x.element_count(); ++i) {
    out->typed_data()[i] = x.typed_data()[i] + o->value;
  }
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER(kMake, Make, ffi::Ffi::BindInstantiate().Attr<float>("offset"));
XLA_FFI_DEFINE_HANDLER(kPrepare, Prepare,
                       ffi::Ffi::Bind<ffi::ExecutionStage::kPrepare>()
                           .Ctx<ffi::State<Offset>>()
                           .Attr<float>("offset")
                           .Arg<ffi::Buffer<ffi::F32>>()
                           .Ret<ffi::Buffer<ffi::F32>>());
XLA_FFI_DEFINE_HANDLER(kInitialize, Initialize,
                       ffi::Ffi::Bind<ffi::ExecutionStage::kInitialize>()
                           .Ctx<ffi::State<Offset>>()
                           .Attr<float>("offset")
                           .Arg<ffi::Buffer<ffi::F32>>()
                           .Ret<ffi::Buffer<ffi::F32>>());
XLA_FFI_DEFINE_HANDLER(kAdd, Add,
                       ffi::Ffi::Bind()
                           .Ctx<ffi::State<Offset>>()
                           .Attr<float>("offset")
                           .Arg<ffi::Buffer<ffi::F32>>()
                           .Ret<ffi::Buffer<ffi::F32>>());
XLA_FFI_REGISTER_HANDLER(XLA_FFI_GetApi(), "xla_add_offset", "cpu",
                         (XLA_FFI_Handler_Bundle{kMake, kPrepare, kInitialize, kAdd}));
