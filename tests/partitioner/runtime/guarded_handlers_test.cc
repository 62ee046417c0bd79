// SPDX-License-Identifier: Apache-2.0
// In a build with AddressSanitizer a program's handler that leaves its buffers is found:
// where it was compiled with the sanitizer at its line, else behind the call.
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "guarded_stores.h"
#include "run_text.h"
#include "shardcall/kernels/ffi/guard/guarded_call.h"

namespace shardcall {
namespace {

constexpr char kSkipped[] =
    "the build has no AddressSanitizer: cmake --preset asan && cmake --build --preset asan";

absl::StatusOr<std::vector<Tensor>> RunWriter(void (*store)(void*, int64_t), int64_t at) {
  HandlerRegistry handlers;
  HandlerEntry entry;
  entry.target = "leaves_its_buffer";
  entry.host = [store, at](const HandlerContext&, absl::Span<const BufferView>,
                           absl::Span<const BufferView> out) {
    for (int64_t k = 0; k < out[0].num_elements(); ++k) store(out[0].data, k);
    store(out[0].data, at);
    return absl::OkStatus();
  };
  EXPECT_TRUE(handlers.Register(entry).ok());
  DeviceContext device;
  device.handlers = &handlers;
  return RunText(
      "x = f32[5] parameter(0)\n"
      "ROOT %cc.1 = f32[5] custom-call(x), custom_call_target=\"leaves_its_buffer\", "
      "api_version=API_VERSION_TYPED_FFI",
      {Tensor::From(ElementType::kF32, {5}, std::vector<float>{1, 2, 3, 4, 5})}, device);
}

TEST(GuardedHandlers, ALibraryThatNoSanitizerHasSeenIsOneDiagnostic) {
  if (!GuardsHandlers()) GTEST_SKIP() << kSkipped;
  const auto out = RunWriter(StoreUnseen, 5);
  ASSERT_FALSE(out.ok());
  EXPECT_THAT(std::string(out.status().message()),
              testing::AllOf(testing::HasSubstr("E318"), testing::HasSubstr("leaves_its_buffer"),
                             testing::HasSubstr("past its end")));
  EXPECT_TRUE(RunWriter(StoreUnseen, 4).ok());
}

TEST(GuardedHandlersDeathTest, OneThatIsInstrumentedStopsAtItsLineAndIsNamed) {
  if (!GuardsHandlers()) GTEST_SKIP() << kSkipped;
  EXPECT_DEATH((void)RunWriter(StoreSeen, 5), "in the handler of \"leaves_its_buffer\"");
  EXPECT_TRUE(RunWriter(StoreSeen, 4).ok());
}

}  // namespace
}  // namespace shardcall
