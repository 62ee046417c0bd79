// SPDX-License-Identifier: Apache-2.0
// Handlers for the programs of xla_custom_calls_test.cc, written against XLA's
// C++ FFI headers, and a few of the ABIs before it.
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "shardcall/kernels/ffi/shardcall_ffi.h"
#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;
using F32Scalar = ffi::BufferR0<ffi::F32>;
using F32Result = ffi::ResultBufferR0<ffi::F32>;

static ffi::Error AddTwo(F32Scalar x, F32Result y) {
  *y->typed_data() = *x.typed_data() + 2;
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(AddTwoHandler, AddTwo,
                              ffi::Ffi::Bind().Arg<F32Scalar>().Ret<F32Scalar>());

// Writes its operand and leaves its result alone: they must be one buffer.
static ffi::Error AddTwoInPlace(F32Scalar x, F32Result) {
  *x.typed_data() += 2;
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(AddTwoInPlaceHandler, AddTwoInPlace,
                              ffi::Ffi::Bind().Arg<F32Scalar>().Ret<F32Scalar>());

static ffi::Error AddTwoToAny(ffi::AnyBuffer x, ffi::Result<ffi::AnyBuffer> y) {
  switch (x.element_type()) {
    case ffi::F32: *y->typed_data<float>() = *x.typed_data<float>() + 2; break;
    case ffi::F64: *y->typed_data<double>() = *x.typed_data<double>() + 2; break;
    default: return ffi::Error::InvalidArgument("f32 or f64");
  }
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(AddTwoToAnyHandler, AddTwoToAny,
                              ffi::Ffi::Bind().Arg<ffi::AnyBuffer>().Ret<ffi::AnyBuffer>());

static ffi::Error AddN(F32Scalar x, F32Result y, float n) {
  *y->typed_data() = *x.typed_data() + n;
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(AddNHandler, AddN,
                              ffi::Ffi::Bind().Arg<F32Scalar>().Ret<F32Scalar>().Attr<float>("n"));

static ffi::Error AddAtPointer(F32Scalar x, F32Result y, float* n) {
  *y->typed_data() = *x.typed_data() + *n;
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(
    AddAtPointerHandler, AddAtPointer,
    ffi::Ffi::Bind().Arg<F32Scalar>().Ret<F32Scalar>().Attr<ffi::Pointer<float>>("n"));

static ffi::Error Sum(ffi::Buffer<ffi::F32> x, F32Result y) {
  float sum = 0;
  for (size_t i = 0; i < x.element_count(); ++i) sum += x.typed_data()[i];
  *y->typed_data() = sum;
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(SumHandler, Sum,
                              ffi::Ffi::Bind().Arg<ffi::Buffer<ffi::F32>>().Ret<F32Scalar>());

// Adds one to each element, whatever the dimensions.
static ffi::Error AddOne(ffi::Buffer<ffi::F32> x, ffi::ResultBuffer<ffi::F32> y) {
  for (size_t i = 0; i < x.element_count(); ++i) y->typed_data()[i] = x.typed_data()[i] + 1;
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(
    AddOneHandler, AddOne,
    ffi::Ffi::Bind().Arg<ffi::Buffer<ffi::F32>>().Ret<ffi::Buffer<ffi::F32>>());

static ffi::Error Succeed(ffi::Result<ffi::AnyBuffer> y) {
  std::memset(y->untyped_data(), 0, y->size_bytes());
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(SucceedHandler, Succeed, ffi::Ffi::Bind().Ret<ffi::AnyBuffer>());

static ffi::Error Fail(ffi::Result<ffi::AnyBuffer>, int32_t value) {
  return ffi::Error::Internal("Failed with " + std::to_string(value));
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(FailHandler, Fail,
                              ffi::Ffi::Bind().Ret<ffi::AnyBuffer>().Attr<int32_t>("value"));

static ffi::Error FailWithText(ffi::Result<ffi::AnyBuffer>, std::string* text) {
  return ffi::Error::Internal(*text);
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(
    FailWithTextHandler, FailWithText,
    ffi::Ffi::Bind().Ret<ffi::AnyBuffer>().Attr<ffi::Pointer<std::string>>("text"));

// `pattern` has T for each token among operands and results, A for each array.
static ffi::Error Tokens(ffi::RemainingArgs args, ffi::RemainingRets rets,
                         std::string_view pattern) {
  std::string found;
  for (size_t k = 0; k < args.size(); ++k) {
    auto arg = args.get<ffi::AnyBuffer>(k);
    if (arg.has_error()) return arg.error();
    found += arg->element_type() == ffi::TOKEN ? 'T' : 'A';
  }
  for (size_t k = 0; k < rets.size(); ++k) {
    auto ret = rets.get<ffi::AnyBuffer>(k);
    if (ret.has_error()) return ret.error();
    const bool token = (*ret)->element_type() == ffi::TOKEN;
    found += token ? 'T' : 'A';
    if (!token) std::memset((*ret)->untyped_data(), 0, (*ret)->size_bytes());
  }
  if (found != pattern) return ffi::Error::InvalidArgument("found " + found);
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(
    TokensHandler, Tokens,
    ffi::Ffi::Bind().RemainingArgs().RemainingRets().Attr<std::string_view>("pattern"));

enum class Operation : int8_t { kAdd, kMultiply };
enum class Start : int32_t { kZero, kOne };
XLA_FFI_REGISTER_ENUM_ATTR_DECODING(Operation);
XLA_FFI_REGISTER_ENUM_ATTR_DECODING(Start);
static ffi::Error Accumulate(ffi::Buffer<ffi::F32> x, F32Result y, Operation operation,
                             Start start) {
  float value = start == Start::kZero ? 0 : 1;
  for (size_t i = 0; i < x.element_count(); ++i) {
    const float element = x.typed_data()[i];
    value = operation == Operation::kAdd ? value + element : value * element;
  }
  *y->typed_data() = value;
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(AccumulateHandler, Accumulate,
                              ffi::Ffi::Bind()
                                  .Arg<ffi::Buffer<ffi::F32>>()
                                  .Ret<F32Scalar>()
                                  .Attr<Operation>("operation")
                                  .Attr<Start>("start"));

// Result k is operand k + 1, the last one is operand 0.
static ffi::Error Rotate(ffi::RemainingArgs args, ffi::RemainingRets rets) {
  for (size_t k = 0; k < rets.size(); ++k) {
    auto from = args.get<ffi::AnyBuffer>((k + 1) % args.size());
    auto to = rets.get<ffi::AnyBuffer>(k);
    if (from.has_error()) return from.error();
    if (to.has_error()) return to.error();
    if (from->size_bytes() != (*to)->size_bytes()) return ffi::Error::InvalidArgument("sizes");
    std::memcpy((*to)->untyped_data(), from->untyped_data(), from->size_bytes());
  }
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(RotateHandler, Rotate,
                              ffi::Ffi::Bind().RemainingArgs().RemainingRets());

static ffi::Error SwapTyped(ffi::BufferR0<ffi::U32> a, ffi::BufferR0<ffi::S16> b,
                            ffi::ResultBufferR0<ffi::S16> c, ffi::ResultBufferR0<ffi::U32> d) {
  *c->typed_data() = *b.typed_data();
  *d->typed_data() = *a.typed_data();
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(SwapTypedHandler, SwapTyped,
                              ffi::Ffi::Bind()
                                  .Arg<ffi::BufferR0<ffi::U32>>()
                                  .Arg<ffi::BufferR0<ffi::S16>>()
                                  .Ret<ffi::BufferR0<ffi::S16>>()
                                  .Ret<ffi::BufferR0<ffi::U32>>());

// Three columns side by side.
static ffi::Error Columns(ffi::BufferR2<ffi::F32> a, ffi::BufferR2<ffi::F32> b,
                          ffi::BufferR2<ffi::F32> c, ffi::ResultBufferR2<ffi::F32> out) {
  const int64_t rows = out->dimensions()[0];
  for (int64_t i = 0; i < rows; ++i) {
    out->typed_data()[3 * i] = a.typed_data()[i];
    out->typed_data()[3 * i + 1] = b.typed_data()[i];
    out->typed_data()[3 * i + 2] = c.typed_data()[i];
  }
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(ColumnsHandler, Columns,
                              ffi::Ffi::Bind()
                                  .Arg<ffi::BufferR2<ffi::F32>>()
                                  .Arg<ffi::BufferR2<ffi::F32>>()
                                  .Arg<ffi::BufferR2<ffi::F32>>()
                                  .Ret<ffi::BufferR2<ffi::F32>>());

// factor * vector, and the batch with one matrix more at its end.
static ffi::Error Ranks(ffi::BufferR0<ffi::U32> factor, ffi::BufferR1<ffi::S16> vector,
                        ffi::BufferR2<ffi::F32> matrix, ffi::BufferR3<ffi::F32> batch,
                        ffi::ResultBufferR1<ffi::S32> scaled, ffi::ResultBufferR3<ffi::F32> all) {
  if (batch.dimensions()[0] + 1 != all->dimensions()[0])
    return ffi::Error::InvalidArgument("batch");
  for (size_t i = 0; i < vector.element_count(); ++i) {
    scaled->typed_data()[i] = static_cast<int32_t>(*factor.typed_data()) * vector.typed_data()[i];
  }
  std::memcpy(all->typed_data(), batch.typed_data(), batch.size_bytes());
  std::memcpy(all->typed_data() + batch.element_count(), matrix.typed_data(), matrix.size_bytes());
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(RanksHandler, Ranks,
                              ffi::Ffi::Bind()
                                  .Arg<ffi::BufferR0<ffi::U32>>()
                                  .Arg<ffi::BufferR1<ffi::S16>>()
                                  .Arg<ffi::BufferR2<ffi::F32>>()
                                  .Arg<ffi::BufferR3<ffi::F32>>()
                                  .Ret<ffi::BufferR1<ffi::S32>>()
                                  .Ret<ffi::BufferR3<ffi::F32>>());

// Waits for a task that can end only on another thread.
static ffi::Error OnThePool(ffi::Result<ffi::AnyBuffer> y, ffi::ThreadPool pool) {
  struct Meeting {
    std::mutex mutex;
    std::condition_variable changed;
    bool released = false, done = false;
  };
  auto meeting = std::make_shared<Meeting>();
  pool.Schedule([meeting] {
    std::unique_lock<std::mutex> lock(meeting->mutex);
    meeting->changed.wait(lock, [&] { return meeting->released; });
    meeting->done = true;
    meeting->changed.notify_all();
  });
  std::unique_lock<std::mutex> lock(meeting->mutex);
  meeting->released = true;
  meeting->changed.notify_all();
  meeting->changed.wait(lock, [&] { return meeting->done; });
  *y->typed_data<float>() = 1;
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(OnThePoolHandler, OnThePool,
                              ffi::Ffi::Bind().Ret<ffi::AnyBuffer>().Ctx<ffi::ThreadPool>());

// A value that starts at 42, or where an attribute says, and grows by one a call.
struct Value {
  static ffi::TypeId id;
  explicit Value(float s) : value(s) {}
  float value;
};
ffi::TypeId Value::id = {};
extern "C" {
XLA_FFI_TypeInfo ValueInfo = ffi::MakeTypeInfo<Value>();
__attribute__((visibility("default"))) int instantiated = 0;
__attribute__((visibility("default"))) float instantiated_with = 0;
}
static ffi::ErrorOr<std::unique_ptr<Value>> MakeValue() {
  ++instantiated;
  return std::make_unique<Value>(42.0f);
}
static ffi::ErrorOr<std::unique_ptr<Value>> MakeValueFrom(float start) {
  instantiated_with = start;
  return std::make_unique<Value>(start);
}
static ffi::Error NextValue(F32Result y, Value* state) {
  *y->typed_data() = ++state->value;
  return ffi::Error::Success();
}
static ffi::Error NextValueFrom(F32Result y, Value* state, float) { return NextValue(y, state); }
XLA_FFI_DEFINE_HANDLER_SYMBOL(MakeValueHandler, MakeValue, ffi::Ffi::BindInstantiate());
XLA_FFI_DEFINE_HANDLER_SYMBOL(NextValueHandler, NextValue,
                              ffi::Ffi::Bind().Ret<F32Scalar>().Ctx<ffi::State<Value>>());
XLA_FFI_DEFINE_HANDLER_SYMBOL(MakeValueFromHandler, MakeValueFrom,
                              ffi::Ffi::BindInstantiate().Attr<float>("start"));
XLA_FFI_DEFINE_HANDLER_SYMBOL(
    NextValueFromHandler, NextValueFrom,
    ffi::Ffi::Bind().Ret<F32Scalar>().Ctx<ffi::State<Value>>().Attr<float>("start"));

// States of all stages: 42 from instantiate, 1 from prepare, 2 from initialize.
static ffi::ErrorOr<std::unique_ptr<Value>> One() { return std::make_unique<Value>(1.0f); }
static ffi::ErrorOr<std::unique_ptr<Value>> Two() { return std::make_unique<Value>(2.0f); }
static ffi::Error AddValues(F32Result y, Value* a, Value* b, Value* c) {
  *y->typed_data() = a->value + b->value + c->value;
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(PrepareOneHandler, One,
                              ffi::Ffi::Bind<ffi::ExecutionStage::kPrepare>());
XLA_FFI_DEFINE_HANDLER_SYMBOL(InitializeTwoHandler, Two,
                              ffi::Ffi::Bind<ffi::ExecutionStage::kInitialize>());
XLA_FFI_DEFINE_HANDLER_SYMBOL(AddValuesHandler, AddValues,
                              ffi::Ffi::Bind()
                                  .Ret<F32Scalar>()
                                  .Ctx<ffi::State<Value>>()
                                  .Ctx<ffi::Prepared<Value>>()
                                  .Ctx<ffi::Initialized<Value>>());

// What the program that runs a module hands to its handlers: stages note that
// they saw it.
struct Visit {
  static ffi::TypeId id;
  int32_t value = 0;
  bool prepared = false, initialized = false, executed = false;
};
ffi::TypeId Visit::id = {};
extern "C" __attribute__((visibility("default"))) XLA_FFI_TypeId* VisitTypeId() {
  return reinterpret_cast<XLA_FFI_TypeId*>(&Visit::id);
}
static ffi::Error Note(Visit* visit, bool Visit::* which) {
  if (visit->value != 42) return ffi::Error::Internal("another value");
  visit->*which = true;
  return ffi::Error::Success();
}
static ffi::Error NotePrepare(F32Result, Visit* v) { return Note(v, &Visit::prepared); }
static ffi::Error NoteInitialize(F32Result, Visit* v) { return Note(v, &Visit::initialized); }
static ffi::Error NoteExecute(F32Result y, Visit* v) {
  *y->typed_data() = 0;
  return Note(v, &Visit::executed);
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(
    NotePrepareHandler, NotePrepare,
    ffi::Ffi::Bind<ffi::ExecutionStage::kPrepare>().Ret<F32Scalar>().Ctx<ffi::UserData<Visit>>());
XLA_FFI_DEFINE_HANDLER_SYMBOL(NoteInitializeHandler, NoteInitialize,
                              ffi::Ffi::Bind<ffi::ExecutionStage::kInitialize>()
                                  .Ret<F32Scalar>()
                                  .Ctx<ffi::UserData<Visit>>());
XLA_FFI_DEFINE_HANDLER_SYMBOL(NoteExecuteHandler, NoteExecute,
                              ffi::Ffi::Bind().Ret<F32Scalar>().Ctx<ffi::UserData<Visit>>());

// Work that one call starts and another ends; they know it by a number. The
// start's result is its operand's buffer, so that it lives on until the end.
static std::atomic<void*> work[4];
static ffi::Error StartWork(ffi::AnyBuffer x, ffi::Result<ffi::AnyBuffer> y, int32_t channel) {
  if (x.untyped_data() != y->untyped_data()) return ffi::Error::Internal("not aliased");
  if (work[channel & 3].exchange(x.untyped_data()) != nullptr) return ffi::Error::Internal("busy");
  return ffi::Error::Success();
}
static ffi::Error EndWork(ffi::AnyBuffer x, ffi::Result<ffi::AnyBuffer> y, int32_t channel) {
  if (x.untyped_data() == y->untyped_data()) return ffi::Error::Internal("aliased");
  if (work[channel & 3].exchange(nullptr) != x.untyped_data()) {
    return ffi::Error::Internal("another buffer than the start's");
  }
  std::memcpy(y->untyped_data(), x.untyped_data(), x.size_bytes());
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(
    StartWorkHandler, StartWork,
    ffi::Ffi::Bind().Arg<ffi::AnyBuffer>().Ret<ffi::AnyBuffer>().Attr<int32_t>("channel"));
XLA_FFI_DEFINE_HANDLER_SYMBOL(
    EndWorkHandler, EndWork,
    ffi::Ffi::Bind().Arg<ffi::AnyBuffer>().Ret<ffi::AnyBuffer>().Attr<int32_t>("channel"));

struct Device : Shardcall_FfiDevice {
  static ffi::TypeId id;
};
ffi::TypeId Device::id = {SHARDCALL_FFI_DEVICE};

// Runs the call's first computation over its operand.
static ffi::Error Apply(Device* device, ffi::Buffer<ffi::F32> x, ffi::ResultBuffer<ffi::F32> y) {
  const auto view = [](auto& buffer) {
    return Shardcall_FfiBuffer{11, static_cast<int32_t>(buffer.dimensions().size()),
                               buffer.dimensions().begin(), buffer.untyped_data()};
  };
  const Shardcall_FfiBuffer in = view(x), out = view(*y);
  if (device->num_computations != 1) return ffi::Error::InvalidArgument("one computation");
  if (device->call_computation(device, 0, &in, 1, &out, 1) != 0) {
    return ffi::Error::Internal(device->message(device));
  }
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(ApplyHandler, Apply,
                              ffi::Ffi::Bind()
                                  .Ctx<ffi::UserData<Device>>()
                                  .Arg<ffi::Buffer<ffi::F32>>()
                                  .Ret<ffi::Buffer<ffi::F32>>());

// The sum over the devices along an axis of the mesh.
static ffi::Error SumOver(Device* device, ffi::Buffer<ffi::F32> x, ffi::ResultBuffer<ffi::F32> y,
                          std::string_view axis) {
  std::vector<int32_t> group(device->num_devices);
  const int32_t count =
      device->devices_along(device, std::string(axis).c_str(), group.data(), device->num_devices);
  if (count < 0) return ffi::Error::InvalidArgument("no axis " + std::string(axis));
  if (device->all_reduce(device, group.data(), count, SHARDCALL_FFI_SUM, 11, x.typed_data(),
                         y->typed_data(), static_cast<int64_t>(x.element_count())) != 0) {
    return ffi::Error::Internal(device->message(device));
  }
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(SumOverHandler, SumOver,
                              ffi::Ffi::Bind()
                                  .Ctx<ffi::UserData<Device>>()
                                  .Arg<ffi::Buffer<ffi::F32>>()
                                  .Ret<ffi::Buffer<ffi::F32>>()
                                  .Attr<std::string_view>("axis"));

// 100 * coordinate on the first axis + 10 * on the second + whether the names fit.
static ffi::Error Place(Device* device, ffi::ResultBuffer<ffi::F32> y) {
  float place = 0;
  if (device->num_axes == 2) {
    place = 100.0f * device->axis_coordinates[0] + 10.0f * device->axis_coordinates[1] +
            (std::string_view(device->axis_names[0]) == "data" &&
             std::string_view(device->axis_names[1]) == "model");
  }
  for (size_t i = 0; i < y->element_count(); ++i) y->typed_data()[i] = place;
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(
    PlaceHandler, Place,
    ffi::Ffi::Bind().Ctx<ffi::UserData<Device>>().Ret<ffi::Buffer<ffi::F32>>());

// The ABIs before the typed FFI; the runtime has the status setters.
extern "C" {
struct XlaCustomCallStatus_;
void XlaCustomCallStatusSetSuccess(XlaCustomCallStatus_*);
void XlaCustomCallStatusSetFailure(XlaCustomCallStatus_*, const char*, size_t);

__attribute__((visibility("default"))) void AddTwoUntyped(void* out, const void** in,
                                                          XlaCustomCallStatus_*) {
  *static_cast<float*>(out) = *static_cast<const float*>(in[0]) + 2;
}
__attribute__((visibility("default"))) void SetSuccess(void* out, const void**, const char*, size_t,
                                                       XlaCustomCallStatus_* status) {
  *static_cast<float*>(out) = 0;
  XlaCustomCallStatusSetSuccess(status);
}
__attribute__((visibility("default"))) void FailUntyped(void*, const void** in,
                                                        XlaCustomCallStatus_* status) {
  const std::string text = "Failed: " + std::to_string(*static_cast<const float*>(in[0]));
  XlaCustomCallStatusSetFailure(status, text.data(), text.size());
}
__attribute__((visibility("default"))) void FailWithOpaque(void*, const void**, const char* opaque,
                                                           size_t length,
                                                           XlaCustomCallStatus_* status) {
  const std::string text = "opaque is " + std::string(opaque, length);
  XlaCustomCallStatusSetFailure(status, text.data(), text.size());
}
}
