// SPDX-License-Identifier: Apache-2.0
#include "shardcall/kernels/ffi/xla/frame_device.h"

#include <cstdint>
#include <map>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "shardcall/kernels/ffi/abi_table.h"
#include "shardcall/sharding/base/made_at_first_use.h"
#include "shardcall/sharding/base/process_lock.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace {

// XLA takes no alignment above 16 (XLA_FFI_DeviceMemory_Allocate).
constexpr size_t kFrameAlignment = 16;
constexpr uintptr_t kAlignment = 256;

class FrameDevice final : public HandlerDevice {
 public:
  FrameDevice(const abi::CallFrame& frame, std::shared_ptr<HandlerDevice> opened)
      : HandlerDevice(SameStream{*opened}), frame_(frame), opened_(std::move(opened)) {}
  ~FrameDevice() override {
    ReleaseHeld();
    while (!memory_.empty()) ReleaseMemory(memory_.begin()->first);
  }

  void* stream() override { return opened_->stream(); }
  absl::Status Activate() override { return opened_->Activate(); }
  absl::Status CopyIn(void* to, const void* from, int64_t bytes) override {
    return opened_->CopyIn(to, from, bytes);
  }
  absl::Status CopyWithin(void* to, const void* from, int64_t bytes) override {
    return opened_->CopyWithin(to, from, bytes);
  }
  absl::Status CopyOut(void* to, const void* from, int64_t bytes) override {
    return opened_->CopyOut(to, from, bytes);
  }
  absl::StatusOr<bool> IsIdle() override { return opened_->IsIdle(); }

 protected:
  absl::StatusOr<void*> AllocateMemory(int64_t bytes) override {
    const size_t size = static_cast<size_t>(bytes) + kAlignment - kFrameAlignment;
    abi::MemoryAllocateArgs args = {
        {sizeof(abi::MemoryAllocateArgs), nullptr}, frame_.ctx, size, kFrameAlignment, nullptr};
    if (!Done(frame_, frame_.api->memory_allocate(&args)) || args.data == nullptr) {
      return absl::ResourceExhaustedError(
          absl::StrCat("the runtime has no ", bytes, " bytes of scratch memory"));
    }
    const auto at = reinterpret_cast<uintptr_t>(args.data);
    void* const aligned =
        static_cast<char*>(args.data) + ((kAlignment - at % kAlignment) % kAlignment);
    memory_[aligned] = {args.data, size};
    return aligned;
  }
  void ReleaseMemory(void* memory) override {
    const auto found = memory_.find(memory);
    SHARDCALL_CHECK(found != memory_.end());
    abi::MemoryFreeArgs args = {{sizeof(abi::MemoryFreeArgs), nullptr},
                                frame_.ctx,
                                found->second.second,
                                found->second.first};
    Done(frame_, frame_.api->memory_free(&args));
    memory_.erase(found);
  }

 private:
  const abi::CallFrame& frame_;
  const std::shared_ptr<HandlerDevice> opened_;
  std::map<void*, std::pair<void*, size_t>> memory_;  // as the frame gave it
};

// By platform, ordinal and stream; never destroyed, as nobody says when a stream ends. A later
// stream of that address on that device is as good.
using OpenedStreams = std::map<std::tuple<std::string, int, void*>, std::shared_ptr<HandlerDevice>>;
OpenedStreams& TheStreams() {
  return MadeAtFirstUse([] { return new OpenedStreams; });
}

}  // namespace

bool Done(const abi::CallFrame& frame, abi::Error* error) {
  if (error == nullptr) return true;
  abi::ErrorDestroyArgs destroy = {{sizeof(abi::ErrorDestroyArgs), nullptr}, error};
  frame.api->error_destroy(&destroy);
  return false;
}

absl::StatusOr<std::shared_ptr<HandlerDevice>> DeviceOfFrame(const abi::CallFrame& frame,
                                                             const std::string& platform,
                                                             const HandlerDeviceOpener& opener) {
  abi::StreamGetArgs stream = {{sizeof(abi::StreamGetArgs), nullptr}, frame.ctx, nullptr};
  abi::DeviceOrdinalGetArgs ordinal = {{sizeof(abi::DeviceOrdinalGetArgs), nullptr}, frame.ctx, 0};
  if (!Done(frame, frame.api->stream_get(&stream)) || stream.stream == nullptr ||
      !Done(frame, frame.api->device_ordinal_get(&ordinal))) {
    return ToStatus({.code = "E312",
                     .message = "the runtime does not tell a call's device and stream",
                     .expected = absl::StrCat("a runtime of ", platform),
                     .fix = "Run the program with shardcall.run"},
                    absl::StatusCode::kUnimplemented);
  }
  const auto key =
      std::make_tuple(platform, static_cast<int>(ordinal.device_ordinal), stream.stream);
  std::shared_ptr<HandlerDevice> opened;
  {
    const std::lock_guard<ProcessLock> lock(ProcessLock::Only());
    const auto found = TheStreams().find(key);
    if (found != TheStreams().end()) opened = found->second;
  }
  if (opened == nullptr) {
    SHARDCALL_ASSIGN_OR_RETURN(opened, opener(ordinal.device_ordinal, stream.stream));
    const std::lock_guard<ProcessLock> lock(ProcessLock::Only());
    opened = TheStreams().try_emplace(key, std::move(opened)).first->second;
  }
  SHARDCALL_RETURN_IF_ERROR(opened->Activate());
  return std::shared_ptr<HandlerDevice>(std::make_shared<FrameDevice>(frame, std::move(opened)));
}

}  // namespace internal
}  // namespace shardcall
