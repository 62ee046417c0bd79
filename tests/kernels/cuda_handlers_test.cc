// SPDX-License-Identifier: Apache-2.0
// The four ABIs on a GPU, with handlers that use copies and fills of the CUDA
// runtime for kernels. Skips without a GPU, with the error that users get.
#include <cuda_runtime_api.h>
#include <gmock/gmock.h>

#include <atomic>
#include <cstring>

#include "shardcall/kernels/builtin.h"
#include "shardcall/kernels/ffi/cuda_device.h"
#include "shardcall/kernels/ffi/staged_call.h"
#include "shardcall/kernels/ffi/untyped_handler.h"
#include "tests/kernels/ffi_test_util.h"

namespace shardcall {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr size_t kBytes = 3 * sizeof(float);

bool OnDevice(const void* pointer) {
  cudaPointerAttributes attributes{};
  return cudaPointerGetAttributes(&attributes, pointer) == cudaSuccess &&
         attributes.type == cudaMemoryTypeDevice;
}

void CopyOnStream(cudaStream_t stream, void** buffers, const char*, size_t) {
  EXPECT_TRUE(OnDevice(buffers[0]) && OnDevice(buffers[1]));
  cudaMemcpyAsync(buffers[1], buffers[0], kBytes, cudaMemcpyDeviceToDevice, stream);
}
void CopyWithStatus(cudaStream_t stream, void** buffers, const char* opaque, size_t length,
                    XlaCustomCallStatus* status) {
  CopyOnStream(stream, buffers, opaque, length);
  if (length > 0) XlaCustomCallStatusSetFailure(status, opaque, length);
}
// By way of scratch memory, freed before the stream comes to it.
abi::Error* CopyTyped(abi::CallFrame* frame) {
  if (AnswerMetadata(frame, 3)) return nullptr;
  abi::StreamGetArgs get = {{32, nullptr}, frame->ctx, nullptr};
  if (abi::Error* error = frame->api->stream_get(&get)) return error;
  const auto stream = static_cast<cudaStream_t>(get.stream);
  abi::MemoryAllocateArgs scratch = {{48, nullptr}, frame->ctx, kBytes, 64, nullptr};
  if (abi::Error* error = frame->api->memory_allocate(&scratch)) return error;
  EXPECT_TRUE(OnDevice(scratch.data));
  void* const in = static_cast<const abi::Buffer*>(frame->args.args[0])->data;
  void* const out = static_cast<const abi::Buffer*>(frame->rets.rets[0])->data;
  cudaMemcpyAsync(scratch.data, in, kBytes, cudaMemcpyDeviceToDevice, stream);
  cudaMemcpyAsync(out, scratch.data, kBytes, cudaMemcpyDeviceToDevice, stream);
  abi::MemoryFreeArgs free = {{40, nullptr}, frame->ctx, kBytes, scratch.data};
  return frame->api->memory_free(&free);
}

class CudaHandlers : public testing::Test {
 protected:
  void SetUp() override {
    auto opened = OpenCudaDevice(0, nullptr);
    if (!opened.ok()) {
      EXPECT_EQ(DiagnosticCode(opened.status()), "E303") << opened.status();
      GTEST_SKIP() << opened.status().message();
    }
    device_ = *std::move(opened);
  }
  absl::Status Run(const HandlerEntry& entry) {
    call_.context.api_version = entry.api_version;
    out_ = {0, 0, 0};
    return CallStaged(entry, device_, call_.context, {F32(x_)}, {F32(out_)});
  }
  HandlerEntry Untyped(void* function, int version) {
    return *MakeUntypedEntry("t", "CUDA", function, version, "test");
  }

  std::shared_ptr<HandlerDevice> device_;
  TestCall call_;
  std::vector<float> x_{1, 2, 3}, out_;
};

TEST_F(CudaHandlers, EveryAbiCopiesItsOperand) {
  const HandlerEntry entries[] = {
      Untyped(reinterpret_cast<void*>(CopyOnStream), 1),
      Untyped(reinterpret_cast<void*>(CopyWithStatus), 2),
      Untyped(reinterpret_cast<void*>(CopyWithStatus), 3),
      *MakeTypedEntry("t", "CUDA", {nullptr, nullptr, nullptr, CopyTyped}, "test")};
  for (int round = 0; round < 100; ++round) {
    for (const HandlerEntry& entry : entries) {
      x_[0] = static_cast<float>(round);
      const absl::Status status = Run(entry);
      ASSERT_TRUE(status.ok()) << status << " API version " << entry.api_version;
      ASSERT_EQ(out_, x_);
    }
  }
  call_.context.backend_config = "no";
  EXPECT_THAT(std::string(Run(entries[1]).message()), HasSubstr("E317"));
}

// The shipped kernels against those of the host, on small whole numbers.
TEST_F(CudaHandlers, ShippedKernelsGiveTheNumbersOfTheHost) {
  HandlerRegistry registry;
  ASSERT_TRUE(RegisterBuiltinHandlers(registry).ok());
  for (int64_t rows : {0, 1, 5}) {
    for (int64_t width : {1, 31, 256, 1000}) {
      std::vector<float> x(rows * width), gain(width, 2), y(x.size()), expected(x.size());
      for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 7) - 3;
      const auto run = [&](const char* target, const std::vector<BufferView>& operands,
                           std::vector<float>* out, const char* platform) {
        const auto entry = registry.Find(target, platform);
        ASSERT_TRUE(entry.ok()) << entry.status();
        const BufferView result = View(*out, {rows, width}, ElementType::kF32);
        const absl::Status status =
            std::string(platform) == "Host"
                ? (*entry)->host(call_.context, operands, {result})
                : CallStaged(**entry, device_, call_.context, operands, {result});
        ASSERT_TRUE(status.ok()) << status;
      };
      const BufferView in = View(x, {rows, width}, ElementType::kF32);
      const BufferView by = View(gain, {width}, ElementType::kF32);
      run("custom_relu", {in}, &expected, "Host");
      run("custom_relu", {in}, &y, "CUDA");
      EXPECT_EQ(y, expected);
      run("rms_norm", {in, by}, &expected, "Host");
      run("rms_norm", {in, by}, &y, "CUDA");
      for (size_t i = 0; i < y.size(); ++i) EXPECT_FLOAT_EQ(y[i], expected[i]);
    }
  }
}

TEST_F(CudaHandlers, AFaultOfCudaOnTheStreamIsReported) {
  const auto bad = +[](cudaStream_t stream, void** buffers, const char*, size_t) {
    cudaMemcpyAsync(buffers[1], buffers[0], size_t{1} << 50, cudaMemcpyDeviceToDevice, stream);
    cudaMemsetAsync(buffers[1], 0, kBytes, stream);
  };
  // What the handler does not look at is its own; the stream stays usable.
  EXPECT_TRUE(Run(Untyped(reinterpret_cast<void*>(bad), 1)).ok());
  EXPECT_THAT(out_, ElementsAre(0, 0, 0));
}

TEST_F(CudaHandlers, AStreamThatStandsStillIsAnErrorAndNotTheEnd) {
  static std::atomic<bool> go{false};
  const auto stall = +[](cudaStream_t stream, void**, const char*, size_t) {
    cudaLaunchHostFunc(
        stream,
        [](void*) {
          while (!go) {
          }
        },
        nullptr);
  };
  call_.context.deadline = absl::Milliseconds(200);
  EXPECT_EQ(DiagnosticCode(Run(Untyped(reinterpret_cast<void*>(stall), 1))), "E319");
  go = true;
  call_.context.deadline = absl::Seconds(20);
  EXPECT_TRUE(Run(Untyped(reinterpret_cast<void*>(CopyOnStream), 1)).ok());
  EXPECT_EQ(out_, x_);
}

}  // namespace
}  // namespace shardcall
