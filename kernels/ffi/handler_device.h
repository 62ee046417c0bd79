// SPDX-License-Identifier: Apache-2.0
// The accelerator functions that the runtime needs to call device handlers: memory, copies, a
// stream, and waiting for the stream. cuda_device.h implements it for CUDA; tests implement it with
// host memory.
//
// Each device of a program has its own; several threads may allocate.
#ifndef SHARDCALL_KERNELS_FFI_HANDLER_DEVICE_H_
#define SHARDCALL_KERNELS_FFI_HANDLER_DEVICE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "shardcall/kernels/ffi/kept_states.h"
#include "shardcall/sharding/base/public.h"

namespace shardcall SHARDCALL_PUBLIC {

class HandlerDevice {
 public:
  HandlerDevice() = default;
  HandlerDevice(const HandlerDevice&) = delete;
  HandlerDevice& operator=(const HandlerDevice&) = delete;
  virtual ~HandlerDevice() = default;

  // Device memory aligned to 256 bytes, not initialised; null for 0 bytes.
  absl::StatusOr<void*> Allocate(int64_t bytes);
  // A stream that is busy may still use the memory, so it is reused only after a Wait.
  void Free(void* memory);
  // Keeps `owner` until a Wait has found the stream idle.
  void Hold(std::shared_ptr<const void> owner);
  // Waits until the stream is idle. kDeadlineExceeded past the deadline; freed and held objects
  // then stay alive, since the stream may still use them.
  absl::Status Wait(absl::Duration deadline);

  // State that handlers keep for this device and its stream, such as a library's handle. It is
  // destroyed with the device, unless the stream is still busy then.
  KeptStates& kept() { return *kept_; }

  // The platform's handle, a cudaStream_t.
  virtual void* stream() = 0;
  // Makes this the current device of the calling thread, before a handler runs on it.
  virtual absl::Status Activate() = 0;
  // Enqueued on the stream; the host memory must stay valid until a Wait.
  virtual absl::Status CopyIn(void* to, const void* from_host, int64_t bytes) = 0;
  virtual absl::Status CopyWithin(void* to, const void* from, int64_t bytes) = 0;
  // Copies to the host synchronously; call it after a Wait.
  virtual absl::Status CopyOut(void* to_host, const void* from, int64_t bytes) = 0;
  // Whether all that was enqueued on the stream is over.
  virtual absl::StatusOr<bool> IsIdle() = 0;

 protected:
  // Shares what handlers keep for a device and its stream.
  struct SameStream {
    HandlerDevice& as;
  };
  explicit HandlerDevice(SameStream stream) : kept_(stream.as.kept_) {}
  virtual absl::StatusOr<void*> AllocateMemory(int64_t bytes) = 0;
  virtual void ReleaseMemory(void* memory) = 0;
  // For destructors of derived classes: releases memory and kept objects, unless the stream is
  // still busy with them.
  void ReleaseAll();
  // The same for held objects alone.
  void ReleaseHeld();

 private:
  std::mutex mutex_;
  std::map<void*, int64_t> sizes_;      // of all results of AllocateMemory
  std::multimap<int64_t, void*> idle_;  // by size
  std::vector<void*> freed_;            // since the last Wait
  std::vector<std::shared_ptr<const void>> held_;
  std::shared_ptr<KeptStates> kept_ = std::make_shared<KeptStates>();
};

// Opens the device that partition `ordinal` of a program uses. Its work runs on `stream` (null:
// one of its own), which outlives it.
using HandlerDeviceOpener =
    std::function<absl::StatusOr<std::shared_ptr<HandlerDevice>>(int ordinal, void* stream)>;

}  // namespace shardcall

#endif  // SHARDCALL_KERNELS_FFI_HANDLER_DEVICE_H_
