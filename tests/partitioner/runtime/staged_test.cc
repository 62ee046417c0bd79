// SPDX-License-Identifier: Apache-2.0
// Programs whose custom calls have handlers for CUDA alone, on accelerators in host
// memory; and without any.
#include <atomic>

#include "shardcall/collectives/forwarding.h"
#include "shardcall/collectives/in_process/in_process.h"
#include "shardcall/kernels/ffi/untyped_handler.h"
#include "shardcall/partitioner/runtime/execute/executor.h"
#include "tests/kernels/fake_device.h"
#include "tests/partitioner/runtime/run_text.h"

namespace shardcall {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr char kTwice[] =
    "p = s32[2] parameter(0)\nn = s32[2] negate(p)\n"
    "c = s32[2] custom-call(n), custom_call_target=\"twice\"\nROOT r = s32[2] add(c, p)";

void TwiceOnStream(void* stream, void** buffers, const char*, size_t) {
  FakeDevice& device = FakeDevice::Of(stream);
  device.Enqueue([&device, in = buffers[0], out = buffers[1]] {
    for (int i = 0; i < 2; ++i) device.At<int32_t>(out)[i] = 2 * device.At<int32_t>(in)[i];
  });
}

void Register(HandlerRegistry* handlers, absl::string_view platform, void* function) {
  auto entry = MakeUntypedEntry("twice", platform, function, 1, "test");
  ASSERT_TRUE(entry.ok()) << entry.status();
  ASSERT_TRUE(handlers->Register(*std::move(entry)).ok());
}

class CudaHandlers : public testing::Test {
 protected:
  CudaHandlers() { Register(&handlers_, "CUDA", reinterpret_cast<void*>(TwiceOnStream)); }
  void UseFakes() {
    handlers_.SetDevices(
        "CUDA",
        [this](int ordinal, void* stream) -> absl::StatusOr<std::shared_ptr<HandlerDevice>> {
          if (stream != nullptr)
            return std::shared_ptr<HandlerDevice>(&FakeDevice::Of(stream), [](auto*) {});
          opened_ |= 1 << ordinal;
          return std::make_shared<FakeDevice>();
        });
  }
  HandlerRegistry handlers_;
  std::atomic<int> opened_{0};
};

TEST_F(CudaHandlers, RunFromHostMemoryOnEveryDevice) {
  UseFakes();
  const auto program = LowerText(kTwice, "num_partitions=4");
  ASSERT_TRUE(program.ok()) << program.status();
  std::vector<std::vector<Tensor>> lists;
  for (int d = 0; d < 4; ++d) lists.push_back({S32({2}, {d, 10 * d})});
  const auto r = RunOnThreads(**program, lists, 4, &handlers_, absl::Seconds(20));
  ASSERT_TRUE(r.ok()) << r.status();
  for (int d = 0; d < 4; ++d) EXPECT_THAT(Numbers((*r)[d][0]), ElementsAre(-d, -10 * d));
  EXPECT_EQ(opened_, 15);
}

TEST_F(CudaHandlers, AHandlerForTheHostComesFirst) {
  UseFakes();
  Register(&handlers_, "Host", reinterpret_cast<void*>(+[](void* out, const void** in) {
    for (int i = 0; i < 2; ++i) {
      static_cast<int32_t*>(out)[i] = 100 * static_cast<const int32_t*>(in[0])[i];
    }
  }));
  DeviceContext device;
  device.handlers = &handlers_;
  const auto r = RunText(kTwice, {S32({2}, {1, 2})}, device);
  ASSERT_TRUE(r.ok()) << r.status();
  EXPECT_THAT(Numbers((*r)[0]), ElementsAre(-99, -198));
  EXPECT_EQ(opened_, 0);
}

// A backend whose buffers may be on the accelerator.
class OnStream final : public ForwardingCommunicator {
 public:
  OnStream(Communicator& inner, void* stream) : ForwardingCommunicator(inner), stream_(stream) {}
  void* stream() const override { return stream_; }

 private:
  void* const stream_;
};

TEST_F(CudaHandlers, TheCommunicatorsStreamReachesTheHandlerAndComesBeforeTheHost) {
  UseFakes();
  Register(&handlers_, "Host",
           reinterpret_cast<void*>(+[](void*, const void**) { FAIL() << "on the host"; }));
  InProcessWorld world(1, absl::Seconds(20));
  const std::unique_ptr<Communicator> comm = world.Rank(0);
  FakeDevice fake;
  OnStream on_stream(*comm, fake.stream());
  DeviceContext device;
  device.handlers = &handlers_;
  device.comm = &on_stream;
  const auto r = RunText(kTwice, {S32({2}, {1, 2})}, device);
  ASSERT_TRUE(r.ok()) << r.status();
  EXPECT_THAT(Numbers((*r)[0]), ElementsAre(-1, -2));
  EXPECT_EQ(fake.activations(), 1);
  EXPECT_EQ(opened_, 0) << "the communicator's is there";
}

TEST_F(CudaHandlers, WithoutADeviceNothingRunsAndOneErrorSaysBoth) {
  handlers_.SetDevices("CUDA", [](int, void*) -> absl::StatusOr<std::shared_ptr<HandlerDevice>> {
    return ToStatus({.code = "E303", .message = "there is no CUDA device"},
                    absl::StatusCode::kUnavailable);
  });
  DeviceContext device;
  device.handlers = &handlers_;
  const absl::Status status = RunText(kTwice, {S32({2}, {1, 2})}, device).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("E140"), HasSubstr("\"twice\" at %c is registered for: CUDA"),
                    HasSubstr("Requested: Host"), HasSubstr("E303 there is no CUDA device")));
}

}  // namespace
}  // namespace shardcall
