// SPDX-License-Identifier: Apache-2.0
// Handlers for CUDA in each of the four ABIs, on an accelerator in host memory.
#include "shardcall/kernels/ffi/staged_call.h"

#include <gmock/gmock.h>

#include "shardcall/kernels/ffi/shardcall_ffi.h"
#include "shardcall/kernels/ffi/untyped_handler.h"
#include "tests/kernels/fake_device.h"
#include "tests/kernels/ffi_test_util.h"

namespace shardcall {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

// out = factor * in, later.
void Scale(FakeDevice& device, const void* in, void* out, int64_t count, float factor) {
  device.Enqueue([=, &device] {
    for (int64_t i = 0; i < count; ++i) {
      device.At<float>(out)[i] = factor * device.At<float>(in)[i];
    }
  });
}

HandlerEntry Untyped(void* function, int api_version) {
  auto entry = MakeUntypedEntry("t", "CUDA", function, api_version, "test");
  EXPECT_TRUE(entry.ok()) << entry.status();
  return *std::move(entry);
}
template <typename R, typename... A>
HandlerEntry Untyped(R (*function)(A...), int api_version) {
  return Untyped(reinterpret_cast<void*>(function), api_version);
}

class Staged : public testing::Test {
 protected:
  absl::Status Run(const HandlerEntry& entry, std::vector<BufferView> operands,
                   std::vector<BufferView> results) {
    call_.context.api_version = entry.api_version;
    return CallStaged(entry, device_, call_.context, operands, results);
  }
  std::string Error(const HandlerEntry& entry, std::vector<BufferView> operands,
                    std::vector<BufferView> results) {
    return std::string(Run(entry, operands, results).message());
  }

  const std::shared_ptr<FakeDevice> device_ = std::make_shared<FakeDevice>();
  TestCall call_;
  std::vector<float> x_{1, 2, 3}, y_{10, 20}, out_ = std::vector<float>(3), more_{0, 0};
};

TEST_F(Staged, OriginalGetsTheStreamAndAllBuffersInOneTable) {
  const auto handler = +[](void* stream, void** buffers, const char* opaque, size_t opaque_len) {
    FakeDevice& device = FakeDevice::Of(stream);
    EXPECT_EQ(std::string(opaque, opaque_len), "by ten");
    EXPECT_EQ(buffers[1], nullptr) << "a token";
    for (int k : {0, 2, 3, 4}) EXPECT_TRUE(FakeDevice::IsDevicePointer(buffers[k])) << k;
    Scale(device, buffers[0], buffers[3], 3, 10);
    Scale(device, buffers[2], buffers[4], 2, -1);
  };
  call_.context.backend_config = "by ten";
  call_.context.tuple_result = true;
  BufferView token;
  token.type = ElementType::kToken;
  const absl::Status status =
      Run(Untyped(handler, 1), {F32(x_), token, F32(y_)}, {F32(out_), F32(more_)});
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_THAT(out_, ElementsAre(10, 20, 30));
  EXPECT_THAT(more_, ElementsAre(-10, -20));
  EXPECT_EQ(device_->activations(), 1);
}

void SetOrFail(void* stream, void** buffers, const char* opaque, size_t opaque_len,
               XlaCustomCallStatus* status) {
  Scale(FakeDevice::Of(stream), buffers[0], buffers[1], 3, 2);
  if (opaque_len > 0) XlaCustomCallStatusSetFailure(status, opaque, opaque_len);
}

TEST_F(Staged, StatusReturningAndUnifiedSetTheirStatus) {
  for (int version : {2, 3}) {
    out_ = {0, 0, 0};
    call_.context.backend_config = "";
    ASSERT_TRUE(Run(Untyped(SetOrFail, version), {F32(x_)}, {F32(out_)}).ok());
    EXPECT_THAT(out_, ElementsAre(2, 4, 6));
    call_.context.backend_config = "too warm";
    EXPECT_THAT(
        Error(Untyped(SetOrFail, version), {F32(x_)}, {F32(out_)}),
        AllOf(HasSubstr("E317"), HasSubstr("\"t\" failed: too warm"), HasSubstr("%call.1")));
    const auto fail = [](void*, void**, const char*, size_t, XlaCustomCallStatus* status) {
      XlaCustomCallStatusSetFailure(status, "", 0);
    };
    EXPECT_THAT(Error(Untyped(+fail, version), {F32(x_)}, {F32(out_)}),
                HasSubstr("\"t\" failed without a message"));
  }
}

// Scratch memory between two steps on the stream, freed before either runs.
abi::Error* Typed(abi::CallFrame* frame) {
  if (AnswerMetadata(frame, 3)) return nullptr;
  abi::StreamGetArgs stream = {{32, nullptr}, frame->ctx, nullptr};
  if (abi::Error* error = frame->api->stream_get(&stream)) return error;
  FakeDevice& device = FakeDevice::Of(stream.stream);
  const auto* in = static_cast<const abi::Buffer*>(frame->args.args[0]);
  const auto* out = static_cast<const abi::Buffer*>(frame->rets.rets[0]);
  abi::MemoryAllocateArgs scratch = {{48, nullptr}, frame->ctx, 12, 64, nullptr};
  if (abi::Error* error = frame->api->memory_allocate(&scratch)) return error;
  EXPECT_TRUE(FakeDevice::IsDevicePointer(scratch.data));
  Scale(device, in->data, scratch.data, in->dims[0], 3);
  Scale(device, scratch.data, out->data, in->dims[0], 2);
  abi::MemoryFreeArgs free = {{40, nullptr}, frame->ctx, 12, scratch.data};
  if (abi::Error* error = frame->api->memory_free(&free)) return error;
  abi::MemoryAllocateArgs other = {{48, nullptr}, frame->ctx, 12, 64, nullptr};
  if (abi::Error* error = frame->api->memory_allocate(&other)) return error;
  EXPECT_NE(other.data, scratch.data) << "the stream still uses it";
  return nullptr;
}

HandlerEntry TypedEntry(abi::Handler* execute) {
  auto entry = MakeTypedEntry("t", "CUDA", {nullptr, nullptr, nullptr, execute}, "test");
  EXPECT_TRUE(entry.ok()) << entry.status();
  return *std::move(entry);
}

TEST_F(Staged, TypedHasTheStreamAndScratchMemoryOfTheDevice) {
  const HandlerEntry entry = TypedEntry(Typed);
  for (int round = 0; round < 3; ++round) {
    out_ = {0, 0, 0};
    const absl::Status status = Run(entry, {F32(x_)}, {F32(out_)});
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_THAT(out_, ElementsAre(6, 12, 18));
  }
  EXPECT_EQ(device_->allocations(), 4) << "calls use the memory of those before";
}

TEST_F(Staged, AFutureIsAwaitedBeforeTheStream) {
  const HandlerEntry entry = TypedEntry([](abi::CallFrame* frame) -> abi::Error* {
    if (AnswerMetadata(frame, 3)) return nullptr;
    abi::StreamGetArgs stream = {{32, nullptr}, frame->ctx, nullptr};
    if (abi::Error* error = frame->api->stream_get(&stream)) return error;
    abi::FutureCreateArgs future = {{16, nullptr}, nullptr};
    if (abi::Error* error = frame->api->future_create(&future)) return error;
    frame->future = future.future;
    void* const in = static_cast<const abi::Buffer*>(frame->args.args[0])->data;
    void* const out = static_cast<const abi::Buffer*>(frame->rets.rets[0])->data;
    std::thread([=, api = frame->api, &device = FakeDevice::Of(stream.stream)] {
      absl::SleepFor(absl::Milliseconds(20));
      Scale(device, in, out, 3, 5);
      abi::FutureSetAvailableArgs done = {{24, nullptr}, future.future};
      api->future_set_available(&done);
    }).detach();
    return nullptr;
  });
  const absl::Status status = Run(entry, {F32(x_)}, {F32(out_)});
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_THAT(out_, ElementsAre(5, 10, 15));
}

TEST_F(Staged, AResultThatIsAnOperandIsOneBufferOnTheDeviceToo) {
  const auto handler = +[](void* stream, void** buffers, const char*, size_t) {
    EXPECT_EQ(buffers[0], buffers[1]);
    Scale(FakeDevice::Of(stream), buffers[0], buffers[1], 3, 4);
  };
  ASSERT_TRUE(Run(Untyped(handler, 1), {F32(x_)}, {F32(x_)}).ok());
  EXPECT_THAT(x_, ElementsAre(4, 8, 12));
}

TEST_F(Staged, EmptyBuffersNeedNoMemory) {
  std::vector<float> none;
  const auto handler = +[](void*, void** buffers, const char*, size_t) {
    EXPECT_EQ(buffers[0], nullptr);
    EXPECT_EQ(buffers[1], nullptr);
  };
  ASSERT_TRUE(Run(Untyped(handler, 1), {F32(none)}, {F32(none)}).ok());
  EXPECT_EQ(device_->allocations(), 0);
}

TEST_F(Staged, AStreamThatDoesNotMoveIsAnErrorAndItsMemoryStays) {
  const auto handler = +[](void* stream, void** buffers, const char*, size_t) {
    FakeDevice::Of(stream).Block();
    Scale(FakeDevice::Of(stream), buffers[0], buffers[1], 3, 2);
  };
  bool kept = false;
  auto host = std::make_shared<int>(0);
  const std::weak_ptr<int> owner = host;
  call_.context.keep_buffers = [&] {
    kept = true;
    return std::exchange(host, nullptr);
  };
  call_.context.deadline = absl::Milliseconds(100);
  const absl::Time start = absl::Now();
  EXPECT_THAT(Error(Untyped(handler, 1), {F32(x_)}, {F32(out_)}),
              AllOf(HasSubstr("E319"), HasSubstr("the work of \"t\""), HasSubstr("%call.1"),
                    HasSubstr("100ms")));
  EXPECT_LT(absl::Now() - start, absl::Seconds(60));
  EXPECT_TRUE(kept);
  EXPECT_FALSE(owner.expired()) << "the stream may still come to it";
  const int before = device_->allocations();
  ASSERT_TRUE(device_->Allocate(12).ok());
  EXPECT_GT(device_->allocations(), before) << "memory in use is not given out";
  device_->Unblock();
  ASSERT_TRUE(device_->Wait(absl::Seconds(10)).ok());
  EXPECT_TRUE(owner.expired());
}

TEST_F(Staged, WhatTheDeviceCannotDoIsNamedWithTheCall) {
  const auto nothing = +[](void*, void**, const char*, size_t) {};
  std::vector<float> large(1 << 20);
  EXPECT_THAT(Error(Untyped(nothing, 1), {F32(large)}, {F32(out_)}),
              AllOf(HasSubstr("E309"), HasSubstr("memory for the operands of \"t\""),
                    HasSubstr("%call.1"), HasSubstr("no 4194304 bytes on the device")));
  device_->FailCopies(true);
  EXPECT_THAT(Error(Untyped(nothing, 1), {F32(x_)}, {F32(out_)}),
              AllOf(HasSubstr("E309"), HasSubstr("the bus is broken")));
  device_->FailCopies(false);
  EXPECT_TRUE(Run(Untyped(nothing, 1), {F32(x_)}, {F32(out_)}).ok());
}

TEST_F(Staged, AHandlerThatThrowsOrIsCalledOffTheDeviceIsAnError) {
  const auto thrower = +[](void*, void**, const char*, size_t) { throw std::runtime_error("hot"); };
  EXPECT_THAT(Error(Untyped(thrower, 1), {F32(x_)}, {F32(out_)}),
              AllOf(HasSubstr("E317"), HasSubstr("hot")));
  call_.context.api_version = 1;
  EXPECT_THAT(std::string(Untyped(thrower, 1).host(call_.context, {}, {}).message()),
              AllOf(HasSubstr("E140"), HasSubstr("registered for CUDA")));
}

// The device extension on the device.
const Shardcall_FfiDevice* Extension(abi::CallFrame* frame) {
  const abi::TypeId id = {SHARDCALL_FFI_DEVICE};
  abi::ContextGetArgs args = {{40, nullptr}, frame->ctx, &id, nullptr};
  EXPECT_EQ(frame->api->context_get(&args), nullptr);
  return static_cast<const Shardcall_FfiDevice*>(args.data);
}

TEST_F(Staged, ACollectiveOfOneDeviceCopiesOnTheStream) {
  const HandlerEntry entry = TypedEntry([](abi::CallFrame* frame) -> abi::Error* {
    if (AnswerMetadata(frame, 3)) return nullptr;
    const Shardcall_FfiDevice* device = Extension(frame);
    const int32_t failed =
        device->all_reduce(device, nullptr, 0, SHARDCALL_FFI_SUM, 11,
                           static_cast<const abi::Buffer*>(frame->args.args[0])->data,
                           static_cast<const abi::Buffer*>(frame->rets.rets[0])->data, 3);
    return failed == 0 ? nullptr : MakeError(frame, failed, device->message(device));
  });
  const absl::Status status = Run(entry, {F32(x_)}, {F32(out_)});
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(out_, x_);
}

// Doubles its operand, in host memory.
class Doubling final : public AttachedComputations {
 public:
  int size() const override { return 1; }
  absl::Status Call(int, absl::Span<const BufferView> operands,
                    absl::Span<const BufferView> results) const override {
    for (int64_t i = 0; i < operands[0].num_elements(); ++i) {
      static_cast<float*>(results[0].data)[i] = 2 * static_cast<const float*>(operands[0].data)[i];
    }
    return absl::OkStatus();
  }
};

TEST_F(Staged, ComputationsOfTheCallRunOnTheHost) {
  const HandlerEntry entry = TypedEntry([](abi::CallFrame* frame) -> abi::Error* {
    if (AnswerMetadata(frame, 3)) return nullptr;
    const Shardcall_FfiDevice* device = Extension(frame);
    abi::StreamGetArgs stream = {{32, nullptr}, frame->ctx, nullptr};
    frame->api->stream_get(&stream);
    const auto* in = static_cast<const abi::Buffer*>(frame->args.args[0]);
    const auto* out = static_cast<const abi::Buffer*>(frame->rets.rets[0]);
    Scale(FakeDevice::Of(stream.stream), in->data, in->data, 3, 10);  // before it, on the stream
    const int64_t dims[] = {3};
    const Shardcall_FfiBuffer from = {11, 1, dims, in->data}, to = {11, 1, dims, out->data};
    const int32_t failed = device->call_computation(device, 0, &from, 1, &to, 1);
    return failed == 0 ? nullptr : MakeError(frame, failed, device->message(device));
  });
  const Doubling doubling;
  call_.context.computations = &doubling;
  const absl::Status status = Run(entry, {F32(x_)}, {F32(out_)});
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_THAT(out_, ElementsAre(20, 40, 60));
  EXPECT_THAT(x_, ElementsAre(1, 2, 3)) << "operands are copies";
}

}  // namespace
}  // namespace shardcall
