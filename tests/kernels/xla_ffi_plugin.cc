// SPDX-License-Identifier: Apache-2.0
// A library of custom-call handlers as an author writes them today: XLA's own
// C++ FFI headers, nothing of shardcall. Compiled against every version of the
// headers; tests load it. The oldest know no device ordinal, no deleters of
// types, and no states of prepare and initialize.
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;

static ffi::Error Axpy(float a, ffi::Buffer<ffi::F32> x, ffi::Buffer<ffi::F32> y,
                       ffi::ResultBuffer<ffi::F32> out) {
  if (x.element_count() != y.element_count()) {
    return ffi::Error::InvalidArgument("x and y differ in length");
  }
  for (size_t i = 0; i < x.element_count(); ++i) {
    out->typed_data()[i] = a * x.typed_data()[i] + y.typed_data()[i];
  }
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(AxpyHandler, Axpy,
                              ffi::Ffi::Bind()
                                  .Attr<float>("a")
                                  .Arg<ffi::Buffer<ffi::F32>>()
                                  .Arg<ffi::Buffer<ffi::F32>>()
                                  .Ret<ffi::Buffer<ffi::F32>>(),
                              {ffi::Traits::kCmdBufferCompatible});

// Sums any number of operands into one result, and their number into a second
// if there is one.
static ffi::Error SumAll(ffi::RemainingArgs args, ffi::Result<ffi::AnyBuffer> out,
                         ffi::RemainingRets more) {
  for (size_t i = 0; i < out->element_count(); ++i) out->typed_data<float>()[i] = 0;
  for (size_t k = 0; k < args.size(); ++k) {
    auto arg = args.get<ffi::Buffer<ffi::F32>>(k);
    if (arg.has_error()) return arg.error();
    for (size_t i = 0; i < arg->element_count(); ++i) {
      out->typed_data<float>()[i] += arg->typed_data()[i];
    }
  }
  if (more.size() == 1) {
    auto count = more.get<ffi::BufferR0<ffi::S32>>(0);
    if (count.has_error()) return count.error();
    *(*count)->typed_data() = static_cast<int32_t>(args.size());
  }
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(
    SumAllHandler, SumAll, ffi::Ffi::Bind().RemainingArgs().Ret<ffi::AnyBuffer>().RemainingRets());

static ffi::Error AddOptional(ffi::BufferR0<ffi::F32> x, std::optional<ffi::BufferR0<ffi::F32>> y,
                              ffi::ResultBufferR0<ffi::F32> out) {
  *out->typed_data() = *x.typed_data() + (y.has_value() ? *y->typed_data() : 100);
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(AddOptionalHandler, AddOptional,
                              ffi::Ffi::Bind()
                                  .Arg<ffi::BufferR0<ffi::F32>>()
                                  .OptionalArg<ffi::BufferR0<ffi::F32>>()
                                  .Ret<ffi::BufferR0<ffi::F32>>());

enum class Kind : int32_t { kOne = 1, kTwo = 2 };
XLA_FFI_REGISTER_ENUM_ATTR_DECODING(Kind);

struct Range {
  int64_t lo;
  int64_t hi;
};
XLA_FFI_REGISTER_STRUCT_ATTR_DECODING(Range, ffi::StructMember<int64_t>("lo"),
                                      ffi::StructMember<int64_t>("hi"));

// An attribute of every kind; an error says which one is wrong.
static ffi::Error Attributes(bool flag, int32_t i32, double f64, std::string_view text,
                             ffi::Span<const int64_t> ints, ffi::Span<const float> floats,
                             Kind kind, Range range, ffi::Dictionary nested,
                             ffi::ResultBufferR0<ffi::S32> out) {
  if (!flag || i32 != -7 || f64 != 0.5) return ffi::Error::InvalidArgument("scalars");
  if (text != "hello") return ffi::Error::InvalidArgument("text");
  if (ints.size() != 3 || ints[2] != 3) return ffi::Error::InvalidArgument("ints");
  if (floats.size() != 2 || floats[1] != 2.5f) return ffi::Error::InvalidArgument("floats");
  if (kind != Kind::kTwo) return ffi::Error::InvalidArgument("enum");
  if (range.lo != 1 || range.hi != 9) return ffi::Error::InvalidArgument("struct");
  auto inner = nested.get<ffi::Dictionary>("inner");
  if (inner.has_error()) return inner.error();
  auto deep = inner->get<int32_t>("deep");
  if (deep.has_error()) return deep.error();
  *out->typed_data() = *deep;
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(AttributesHandler, Attributes,
                              ffi::Ffi::Bind()
                                  .Attr<bool>("flag")
                                  .Attr<int32_t>("i32")
                                  .Attr<double>("f64")
                                  .Attr<std::string_view>("text")
                                  .Attr<ffi::Span<const int64_t>>("ints")
                                  .Attr<ffi::Span<const float>>("floats")
                                  .Attr<Kind>("kind")
                                  .Attr<Range>("range")
                                  .Attr<ffi::Dictionary>("nested")
                                  .Ret<ffi::BufferR0<ffi::S32>>());

static ffi::Error Fails() { return ffi::Error(ffi::ErrorCode::kResourceExhausted, "says no"); }
XLA_FFI_DEFINE_HANDLER_SYMBOL(FailsHandler, Fails, ffi::Ffi::Bind());

static ffi::Error Throws() { throw std::runtime_error("thrown by the plugin"); }
XLA_FFI_DEFINE_HANDLER_SYMBOL(ThrowsHandler, Throws, ffi::Ffi::Bind());

// Run id, device ordinal, scratch memory and a token.
static ffi::Error Contexts(ffi::Token, ffi::RunId run, int32_t device,
                           ffi::ScratchAllocator scratch, ffi::ResultBufferR0<ffi::S64> out) {
  auto memory = scratch.Allocate(1024, 256);
  if (!memory.has_value() || reinterpret_cast<uintptr_t>(*memory) % 256 != 0) {
    return ffi::Error::Internal("scratch");
  }
  static_cast<char*>(*memory)[1023] = 1;
  *out->typed_data() = run.run_id * 1000 + device;
  return ffi::Error::Success();
}
#if XLA_FFI_API_MINOR < 2
static ffi::Error ContextsWithoutDevice(ffi::Token token, ffi::RunId run,
                                        ffi::ScratchAllocator scratch,
                                        ffi::ResultBufferR0<ffi::S64> out) {
  return Contexts(token, run, 3, std::move(scratch), out);
}
#define Contexts ContextsWithoutDevice
#endif
XLA_FFI_DEFINE_HANDLER_SYMBOL(ContextsHandler, Contexts,
                              ffi::Ffi::Bind()
                                  .Arg<ffi::Token>()
                                  .Ctx<ffi::RunId>()
#if XLA_FFI_API_MINOR >= 2
                                  .Ctx<ffi::DeviceOrdinal>()
#endif
                                  .Ctx<ffi::ScratchAllocator>()
                                  .Ret<ffi::BufferR0<ffi::S64>>());

// Squares every element on the thread pool, and says when it is done.
static ffi::Future SquareLater(ffi::Buffer<ffi::F32> x, ffi::ResultBuffer<ffi::F32> out,
                               ffi::ThreadPool pool) {
  auto promise = std::make_shared<ffi::Promise>();
  ffi::Future future(*promise);
  if (pool.num_threads() < 1) promise->SetError(ffi::Error::Internal("no threads"));
  auto left = std::make_shared<std::atomic<size_t>>(x.element_count());
  for (size_t i = 0; i < x.element_count(); ++i) {
    pool.Schedule([=]() mutable {
      out->typed_data()[i] = x.typed_data()[i] * x.typed_data()[i];
      if (--*left == 0) promise->SetAvailable();
    });
  }
  return future;
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(SquareLaterHandler, SquareLater,
                              ffi::Ffi::Bind()
                                  .Arg<ffi::Buffer<ffi::F32>>()
                                  .Ret<ffi::Buffer<ffi::F32>>()
                                  .Ctx<ffi::ThreadPool>());

// A counter that instantiate makes and every call of the program adds to.
struct Counter {
  static ffi::TypeId id;
  explicit Counter(int64_t s) : value(s) {}
  std::atomic<int64_t> value;
};
ffi::TypeId Counter::id = {};
#if XLA_FFI_API_MINOR >= 2
extern "C" {
XLA_FFI_TypeInfo CounterInfo = ffi::MakeTypeInfo<Counter>();
}
#endif
extern "C" __attribute__((visibility("default"))) XLA_FFI_TypeId* CounterTypeId() {
  return reinterpret_cast<XLA_FFI_TypeId*>(&Counter::id);
}

static ffi::ErrorOr<std::unique_ptr<Counter>> CountInstantiate(int64_t start) {
  return std::make_unique<Counter>(start);
}
static ffi::Error CountExecute(Counter* counter, int64_t start, ffi::ResultBufferR0<ffi::S64> out) {
  (void)start;
  *out->typed_data() = ++counter->value;
  return ffi::Error::Success();
}
static ffi::Error CountPrepare(Counter* counter, int64_t, ffi::ResultBufferR0<ffi::S64>) {
  counter->value += 100;
  return ffi::Error::Success();
}
static ffi::Error CountInitialize(Counter* counter, int64_t, ffi::ResultBufferR0<ffi::S64>) {
  counter->value += 1000;
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(CountPrepareHandler, CountPrepare,
                              ffi::Ffi::Bind<ffi::ExecutionStage::kPrepare>()
                                  .Ctx<ffi::State<Counter>>()
                                  .Attr<int64_t>("start")
                                  .Ret<ffi::BufferR0<ffi::S64>>());
XLA_FFI_DEFINE_HANDLER_SYMBOL(CountInitializeHandler, CountInitialize,
                              ffi::Ffi::Bind<ffi::ExecutionStage::kInitialize>()
                                  .Ctx<ffi::State<Counter>>()
                                  .Attr<int64_t>("start")
                                  .Ret<ffi::BufferR0<ffi::S64>>());
XLA_FFI_DEFINE_HANDLER_SYMBOL(CountInstantiateHandler, CountInstantiate,
                              ffi::Ffi::BindInstantiate().Attr<int64_t>("start"));
XLA_FFI_DEFINE_HANDLER_SYMBOL(CountHandler, CountExecute,
                              ffi::Ffi::Bind()
                                  .Ctx<ffi::State<Counter>>()
                                  .Attr<int64_t>("start")
                                  .Ret<ffi::BufferR0<ffi::S64>>());

#if XLA_FFI_API_MINOR >= 3
// States of one call: prepare leaves 10, initialize 7 more, execute adds them.
static ffi::ErrorOr<std::unique_ptr<Counter>> MakePrepared() {
  return std::make_unique<Counter>(10);
}
static ffi::ErrorOr<std::unique_ptr<Counter>> MakeInitialized() {
  return std::make_unique<Counter>(7);
}
static ffi::Error AddStates(Counter* prepared, Counter* initialized,
                            ffi::ResultBufferR0<ffi::S64> out) {
  *out->typed_data() = prepared->value + initialized->value;
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(MakePreparedHandler, MakePrepared,
                              ffi::Ffi::Bind<ffi::ExecutionStage::kPrepare>());
XLA_FFI_DEFINE_HANDLER_SYMBOL(MakeInitializedHandler, MakeInitialized,
                              ffi::Ffi::Bind<ffi::ExecutionStage::kInitialize>());
XLA_FFI_DEFINE_HANDLER_SYMBOL(AddStatesHandler, AddStates,
                              ffi::Ffi::Bind()
                                  .Ctx<ffi::Prepared<Counter>>()
                                  .Ctx<ffi::Initialized<Counter>>()
                                  .Ret<ffi::BufferR0<ffi::S64>>());
#endif

// A future that fails, and one that is not completed in time.
static ffi::Future FailLater() {
  ffi::Promise promise;
  ffi::Future future(promise);
  promise.SetError(ffi::Error(ffi::ErrorCode::kUnavailable, "later no"));
  return future;
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(FailLaterHandler, FailLater, ffi::Ffi::Bind());
static ffi::Promise* Forgotten() {
  static ffi::Promise* const promise = new ffi::Promise;
  return promise;
}
static ffi::Future Never() { return ffi::Future(*Forgotten()); }
XLA_FFI_DEFINE_HANDLER_SYMBOL(NeverHandler, Never, ffi::Ffi::Bind());
extern "C" __attribute__((visibility("default"))) void CompleteNever() {
  Forgotten()->SetAvailable();
}

// The version of the headers.
extern "C" __attribute__((visibility("default"))) int HeaderMinor() { return XLA_FFI_API_MINOR; }

// User data, found by its type.
struct Settings {
  static ffi::TypeId id;
  int64_t value;
};
ffi::TypeId Settings::id = {};
extern "C" __attribute__((visibility("default"))) XLA_FFI_TypeId* SettingsTypeId() {
  return reinterpret_cast<XLA_FFI_TypeId*>(&Settings::id);
}
static ffi::Error ReadSettings(Settings* settings, ffi::ResultBufferR0<ffi::S64> out) {
  *out->typed_data() = settings->value;
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(
    ReadSettingsHandler, ReadSettings,
    ffi::Ffi::Bind().Ctx<ffi::UserData<Settings>>().Ret<ffi::BufferR0<ffi::S64>>());
