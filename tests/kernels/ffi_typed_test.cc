// SPDX-License-Identifier: Apache-2.0
// Typed-FFI handlers, written against our declarations of the ABI: what they
// are given, what becomes of their errors, and what happens if they misbehave.
#include <cstring>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>

#include "gmock/gmock.h"
#include "shardcall/kernels/ffi/xla/ffi_error.h"
#include "shardcall/kernels/ffi/xla/ffi_types.h"
#include "tests/kernels/ffi_test_util.h"

namespace shardcall {
namespace {

using testing::HasSubstr;

const abi::Buffer& Arg(const abi::CallFrame* frame, int k) {
  return *static_cast<abi::Buffer*>(frame->args.args[k]);
}
const abi::Buffer& Ret(const abi::CallFrame* frame, int k) {
  return *static_cast<abi::Buffer*>(frame->rets.rets[k]);
}

abi::Error* Twice(abi::CallFrame* frame) {
  if (AnswerMetadata(frame, 3, 0, abi::kCommandBufferCompatible)) return nullptr;
  if (frame->struct_size != 168) return MakeError(frame, 3, "frame size");
  if (frame->stage != abi::Stage::kExecute) return MakeError(frame, 3, "stage");
  if (frame->args.size != 1 || frame->rets.size != 1) return MakeError(frame, 3, "counts");
  const auto* in = static_cast<const float*>(Arg(frame, 0).data);
  auto* out = static_cast<float*>(Ret(frame, 0).data);
  for (int64_t i = 0; i < Arg(frame, 0).dims[0]; ++i) out[i] = 2 * in[i];
  return nullptr;
}

TEST(TypedFfi, AHandlerComputes) {
  std::vector<float> x = {1, 2, 3}, y(3);
  TestCall call;
  const HandlerEntry entry = Entry(Twice);
  ASSERT_TRUE(call.Run(entry, {F32(x)}, {F32(y)}).ok());
  EXPECT_EQ(y, (std::vector<float>{2, 4, 6}));
  EXPECT_EQ(entry.traits, (std::vector<std::string>{"COMMAND_BUFFER_COMPATIBLE"}));
  EXPECT_EQ(entry.api_version, 4);
}

TEST(TypedFfi, ItsCodeAndMessageReachTheCaller) {
  TestCall call;
  const absl::Status status = call.Run(Entry(Twice), {}, {});
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(DiagnosticCode(status), "E317");
  EXPECT_THAT(std::string(status.message()), HasSubstr("the handler of \"t\" failed: counts"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("%call.1"));
  const auto every_code = Entry([](abi::CallFrame* frame) -> abi::Error* {
    if (AnswerMetadata(frame, 1)) return nullptr;
    const auto& code = *static_cast<abi::Scalar*>(frame->attrs.attrs[0]);
    return MakeError(frame, *static_cast<const int32_t*>(code.value), "no");
  });
  for (int code = 1; code <= 16; ++code) {
    TestCall one("{code = " + std::to_string(code) + " : i32}");
    EXPECT_EQ(static_cast<int>(one.Run(every_code, {}, {}).code()), code);
  }
  TestCall unknown("{code = 99 : i32}");
  EXPECT_EQ(unknown.Run(every_code, {}, {}).code(), absl::StatusCode::kUnknown);
}

TEST(TypedFfi, BuffersCarryTypeRankAndDims) {
  const auto entry = Entry([](abi::CallFrame* frame) -> abi::Error* {
    if (AnswerMetadata(frame, 3)) return nullptr;
    const abi::Buffer &token = Arg(frame, 0), &matrix = Arg(frame, 1), &scalar = Arg(frame, 2);
    const bool right = token.dtype == 17 && token.rank == 0 && token.data == nullptr &&
                       matrix.struct_size == 48 && matrix.dtype == 16 && matrix.rank == 2 &&
                       matrix.dims[0] == 3 && matrix.dims[1] == 5 && scalar.rank == 0 &&
                       scalar.dtype == 5 && *static_cast<int64_t*>(scalar.data) == 42;
    return right ? nullptr : MakeError(frame, 3, "wrong buffers");
  });
  std::vector<uint16_t> m(15);
  std::vector<int64_t> s = {42};
  TestCall call;
  EXPECT_TRUE(call.Run(entry,
                       {{ElementType::kToken, {}, nullptr},
                        View(m, {3, 5}, ElementType::kBF16),
                        View(s, {}, ElementType::kS64)},
                       {})
                  .ok());
}

// Text of every attribute, nested ones by their path.
void Describe(const abi::Attrs& attrs, const std::string& prefix,
              std::map<std::string, std::string>* out) {
  for (int64_t i = 0; i < attrs.size; ++i) {
    const std::string name = prefix + std::string(attrs.names[i]->ptr, attrs.names[i]->len);
    switch (attrs.types[i]) {
      case abi::AttrType::kString: {
        const auto& s = *static_cast<abi::ByteSpan*>(attrs.attrs[i]);
        (*out)[name] = "\"" + std::string(s.ptr, s.len) + "\"";
        break;
      }
      case abi::AttrType::kDictionary:
        Describe(*static_cast<abi::Attrs*>(attrs.attrs[i]), name + ".", out);
        break;
      case abi::AttrType::kScalar: {
        const auto& s = *static_cast<abi::Scalar*>(attrs.attrs[i]);
        const int bytes = ElementTypeBytes(static_cast<ElementType>(s.dtype));
        (*out)[name] = std::to_string(s.dtype) + ":";
        for (int b = bytes - 1; b >= 0; --b) {
          char hex[3];
          std::snprintf(hex, sizeof hex, "%02x", static_cast<const unsigned char*>(s.value)[b]);
          (*out)[name] += hex;
        }
        break;
      }
      case abi::AttrType::kArray: {
        const auto& a = *static_cast<abi::Array*>(attrs.attrs[i]);
        const size_t bytes = a.size * ElementTypeBytes(static_cast<ElementType>(a.dtype));
        (*out)[name] = std::to_string(a.dtype) + "x" + std::to_string(a.size) + ":";
        for (size_t b = 0; b < bytes; ++b) {
          char hex[3];
          std::snprintf(hex, sizeof hex, "%02x", static_cast<const unsigned char*>(a.data)[b]);
          (*out)[name] += hex;
        }
        break;
      }
    }
  }
}

std::map<std::string, std::string>* described = nullptr;

TEST(TypedFfi, AttributesOfEveryKindAreGiven) {
  std::map<std::string, std::string> seen;
  described = &seen;
  const auto entry = Entry([](abi::CallFrame* frame) -> abi::Error* {
    if (AnswerMetadata(frame, 3)) return nullptr;
    Describe(frame->attrs, "", described);
    return nullptr;
  });
  TestCall call(
      "{b = true, i8 = -2 : i8, u16 = 65535 : ui16, i64 = -1 : i64, f = 1.0 : f32, d = 1.0 : f64, "
      "h = 1.0 : f16, bf = 1.0 : bf16, s = \"a\\00b\", ints = array<i32: 1, -1>, "
      "floats = dense<[[1.0], [2.0]]> : tensor<2x1xf32>, none = array<i64>, bools = array<i1: "
      "true, false>, more = {deep = {x = 7 : i32}, s = \"\"}}");
  ASSERT_TRUE(call.Run(entry, {}, {}).ok());
  const std::map<std::string, std::string> expected = {{"b", "1:01"},
                                                       {"i8", "2:fe"},
                                                       {"u16", "7:ffff"},
                                                       {"i64", "5:ffffffffffffffff"},
                                                       {"f", "11:3f800000"},
                                                       {"d", "12:3ff0000000000000"},
                                                       {"h", "10:3c00"},
                                                       {"bf", "16:3f80"},
                                                       {"s", std::string("\"a\0b\"", 5)},
                                                       {"ints", "4x2:01000000ffffffff"},
                                                       {"floats", "11x2:0000803f00000040"},
                                                       {"none", "5x0:"},
                                                       {"bools", "1x2:0100"},
                                                       {"more.deep.x", "4:00000007"},
                                                       {"more.s", "\"\""}};
  EXPECT_EQ(seen, expected);
}

TEST(TypedFfi, AThrowIsAStatus) {
  const auto entry = Entry([](abi::CallFrame* frame) -> abi::Error* {
    if (AnswerMetadata(frame, 3)) return nullptr;
    if (frame->args.size == 1) throw 7;
    throw std::runtime_error("out of luck");
  });
  TestCall call;
  absl::Status status = call.Run(entry, {}, {});
  EXPECT_EQ(DiagnosticCode(status), "E317");
  EXPECT_THAT(std::string(status.message()), HasSubstr("threw: out of luck"));
  std::vector<float> x(1);
  status = call.Run(entry, {F32(x)}, {});
  EXPECT_EQ(DiagnosticCode(status), "E317");
}

TEST(TypedFfi, GarbageIsAStatus) {
  const auto error = Entry([](abi::CallFrame* frame) -> abi::Error* {
    if (AnswerMetadata(frame, 3)) return nullptr;
    return reinterpret_cast<abi::Error*>(0x1234);
  });
  TestCall call;
  EXPECT_EQ(DiagnosticCode(call.Run(error, {}, {})), "E318");
  const auto future = Entry([](abi::CallFrame* frame) -> abi::Error* {
    if (AnswerMetadata(frame, 3)) return nullptr;
    frame->future = reinterpret_cast<abi::Future*>(0x1234);
    return nullptr;
  });
  EXPECT_EQ(DiagnosticCode(call.Run(future, {}, {})), "E318");
  const auto destroyed = Entry([](abi::CallFrame* frame) -> abi::Error* {
    if (AnswerMetadata(frame, 3)) return nullptr;
    abi::Error* e = MakeError(frame, 3, "gone");
    abi::ErrorDestroyArgs args = {{24, nullptr}, e};
    frame->api->error_destroy(&args);
    frame->api->error_destroy(&args);
    return e;
  });
  EXPECT_EQ(DiagnosticCode(call.Run(destroyed, {}, {})), "E318");
}

TEST(TypedFfi, TheTableRefusesShortStructsAndNoContext) {
  const auto entry = Entry([](abi::CallFrame* frame) -> abi::Error* {
    if (AnswerMetadata(frame, 3)) return nullptr;
    abi::RunIdGetArgs args = {{24, nullptr}, frame->ctx, 0};
    int refused = 0;
    const auto count = [&](abi::Error* e) {
      if (e == nullptr) return;
      ++refused;
      abi::ErrorDestroyArgs destroy = {{24, nullptr}, e};
      frame->api->error_destroy(&destroy);
    };
    count(frame->api->run_id_get(&args));
    args = {{40, nullptr}, nullptr, 0};
    count(frame->api->run_id_get(&args));
    count(frame->api->run_id_get(nullptr));
    args = {{40, nullptr}, frame->ctx, 0};  // a longer struct is fine
    count(frame->api->run_id_get(&args));
    abi::StreamGetArgs stream = {{32, nullptr}, frame->ctx, nullptr};
    count(frame->api->stream_get(&stream));
    count(frame->api->handler_register(nullptr));
    return refused == 5 && args.run_id == 77 ? nullptr : MakeError(frame, 13, "not refused");
  });
  TestCall call;
  call.context.run_id = 77;
  EXPECT_TRUE(call.Run(entry, {}, {}).ok());
}

TEST(TypedFfi, ContextGivesDeviceRunAndUserData) {
  static int64_t type = *RegisterFfiType("test.user_data", 0, nullptr);
  const auto entry = Entry([](abi::CallFrame* frame) -> abi::Error* {
    if (AnswerMetadata(frame, 3)) return nullptr;
    abi::DeviceOrdinalGetArgs device = {{28, nullptr}, frame->ctx, 0};
    abi::TypeId id = {type};
    abi::ContextGetArgs get = {{40, nullptr}, frame->ctx, &id, nullptr};
    if (frame->api->device_ordinal_get(&device) != nullptr) return MakeError(frame, 13, "device");
    if (abi::Error* e = frame->api->context_get(&get)) return e;
    return device.device_ordinal == *static_cast<int*>(get.data) ? nullptr
                                                                 : MakeError(frame, 13, "differ");
  });
  TestCall call;
  call.context.device_ordinal = 5;
  absl::Status status = call.Run(entry, {}, {});
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr("test.user_data"));
  int five = 5;
  const std::map<int64_t, void*> data = {{type, &five}};
  call.context.user_data = &data;
  status = call.Run(entry, {}, {});
  EXPECT_TRUE(status.ok()) << status;
}

TEST(TypedFfi, ScratchMemoryIsAlignedAndFreedAtTheEnd) {
  const auto entry = Entry([](abi::CallFrame* frame) -> abi::Error* {
    if (AnswerMetadata(frame, 3)) return nullptr;
    abi::MemoryAllocateArgs a = {{48, nullptr}, frame->ctx, 1000, 4096, nullptr};
    if (abi::Error* e = frame->api->memory_allocate(&a)) return e;
    if (reinterpret_cast<uintptr_t>(a.data) % 4096 != 0) return MakeError(frame, 13, "alignment");
    std::memset(a.data, 1, 1000);  // never freed here: the end of the call does it
    abi::MemoryAllocateArgs b = {{48, nullptr}, frame->ctx, 10, 1, nullptr};
    if (abi::Error* e = frame->api->memory_allocate(&b)) return e;
    abi::MemoryFreeArgs f = {{40, nullptr}, frame->ctx, 10, b.data};
    if (abi::Error* e = frame->api->memory_free(&f)) return e;
    abi::Error* twice = frame->api->memory_free(&f);
    if (twice == nullptr) return MakeError(frame, 13, "freed twice");
    abi::ErrorDestroyArgs destroy = {{24, nullptr}, twice};
    frame->api->error_destroy(&destroy);
    abi::MemoryAllocateArgs huge = {{48, nullptr}, frame->ctx, size_t{1} << 62, 1, nullptr};
    return frame->api->memory_allocate(&huge);
  });
  TestCall call;
  EXPECT_EQ(call.Run(entry, {}, {}).code(), absl::StatusCode::kResourceExhausted);
}

TEST(TypedFfi, TasksRunOnThePoolAndAFutureWaitsForThem) {
  struct Work {
    const abi::Api* api;
    abi::Future* future;
    const abi::Buffer* out;
  };
  const auto entry = Entry([](abi::CallFrame* frame) -> abi::Error* {
    if (AnswerMetadata(frame, 3)) return nullptr;
    int64_t threads = 0;
    abi::NumThreadsArgs count = {{32, nullptr}, frame->ctx, &threads};
    if (abi::Error* e = frame->api->num_threads(&count)) return e;
    if (threads < 1) return MakeError(frame, 13, "no threads");
    abi::FutureCreateArgs create = {{16, nullptr}, nullptr};
    if (abi::Error* e = frame->api->future_create(&create)) return e;
    auto* work = new Work{frame->api, create.future, &Ret(frame, 0)};
    abi::ScheduleArgs schedule = {{40, nullptr},
                                  frame->ctx,
                                  [](void* data) {
                                    auto* w = static_cast<Work*>(data);
                                    std::this_thread::sleep_for(std::chrono::milliseconds(20));
                                    static_cast<float*>(w->out->data)[0] = 5;
                                    abi::FutureSetAvailableArgs done = {{24, nullptr}, w->future};
                                    w->api->future_set_available(&done);
                                    w->api->future_set_available(&done);  // the second is nothing
                                    delete w;
                                  },
                                  work};
    if (abi::Error* e = frame->api->schedule(&schedule)) return e;
    frame->future = create.future;
    return nullptr;
  });
  std::vector<float> y(1);
  TestCall call;
  for (int i = 0; i < 5; ++i) {
    y[0] = 0;
    ASSERT_TRUE(call.Run(entry, {}, {F32(y)}).ok());
    EXPECT_EQ(y[0], 5);
  }
}

TEST(TypedFfi, AFutureThatFailsKeepsItsCode) {
  const auto entry = Entry([](abi::CallFrame* frame) -> abi::Error* {
    if (AnswerMetadata(frame, 3)) return nullptr;
    abi::FutureCreateArgs create = {{16, nullptr}, nullptr};
    frame->api->future_create(&create);
    frame->future = create.future;
    abi::FutureSetErrorArgs fail = {{32, nullptr}, create.future, MakeError(frame, 15, "lost it")};
    return frame->api->future_set_error(&fail);
  });
  TestCall call;
  const absl::Status status = call.Run(entry, {}, {});
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(DiagnosticCode(status), "E317");
  EXPECT_THAT(std::string(status.message()), HasSubstr("lost it"));
}

// The future that a handler never completes, or too late.
abi::Future* late = nullptr;
const abi::Api* late_api = nullptr;

TEST(TypedFfi, AFutureMissesItsDeadlineAndTheBuffersLiveOn) {
  const auto entry = Entry([](abi::CallFrame* frame) -> abi::Error* {
    if (AnswerMetadata(frame, 3)) return nullptr;
    abi::FutureCreateArgs create = {{16, nullptr}, nullptr};
    frame->api->future_create(&create);
    late = frame->future = create.future;
    late_api = frame->api;
    return nullptr;
  });
  auto owner = std::make_shared<int>(0);
  TestCall call;
  call.context.deadline = absl::Milliseconds(10);
  call.context.keep_buffers = [&] { return owner; };
  const absl::Status status = call.Run(entry, {}, {});
  EXPECT_EQ(DiagnosticCode(status), "E319");
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(owner.use_count(), 2);
  abi::FutureSetAvailableArgs done = {{24, nullptr}, late};
  EXPECT_EQ(late_api->future_set_available(&done), nullptr);
  EXPECT_EQ(owner.use_count(), 1);
}

TEST(TypedFfi, ATaskThatThrowsFailsTheCall) {
  const auto entry = Entry([](abi::CallFrame* frame) -> abi::Error* {
    if (AnswerMetadata(frame, 3)) return nullptr;
    static std::atomic<int> ran;
    ran = 0;
    abi::ScheduleArgs schedule = {{40, nullptr},
                                  frame->ctx,
                                  [](void*) {
                                    ran = 1;
                                    throw 1;
                                  },
                                  nullptr};
    if (abi::Error* e = frame->api->schedule(&schedule)) return e;
    while (ran == 0) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    return nullptr;
  });
  TestCall call;
  EXPECT_EQ(DiagnosticCode(call.Run(entry, {}, {})), "E317");
}

TEST(TypedFfi, ACallOfAnotherVersionIsRefused) {
  TestCall call;
  call.context.api_version = 2;
  const absl::Status status = call.Run(Entry(Twice), {}, {});
  EXPECT_EQ(DiagnosticCode(status), "E140");
}

absl::Status Made(abi::Handler* handler) {
  return MakeTypedEntry("t", "Host", {nullptr, nullptr, nullptr, handler}, "test").status();
}

TEST(TypedFfi, VersionsOutsideTheSupportedOnesAreRefused) {
  EXPECT_TRUE(Made([](abi::CallFrame* f) -> abi::Error* {
                AnswerMetadata(f, 5);
                return nullptr;
              }).ok());
  absl::Status status = Made([](abi::CallFrame* f) -> abi::Error* {
    AnswerMetadata(f, 6);
    return nullptr;
  });
  EXPECT_EQ(DiagnosticCode(status), "E144");
  EXPECT_THAT(std::string(status.message()), HasSubstr("expected 0.1 to 0.5, found 0.6"));
  status = Made([](abi::CallFrame*) -> abi::Error* { return nullptr; });
  EXPECT_THAT(std::string(status.message()), HasSubstr("does not say its version"));
  status = Made([](abi::CallFrame*) -> abi::Error* { throw std::runtime_error("x"); });
  EXPECT_EQ(DiagnosticCode(status), "E144");
  status = Made([](abi::CallFrame*) { return reinterpret_cast<abi::Error*>(8); });
  EXPECT_EQ(DiagnosticCode(status), "E144");
  status = Made([](abi::CallFrame* f) { return MakeError(f, 9, "type not registered"); });
  EXPECT_THAT(std::string(status.message()), HasSubstr("type not registered"));
  EXPECT_EQ(DiagnosticCode(Made(nullptr)), "E144");
}

}  // namespace
}  // namespace shardcall
