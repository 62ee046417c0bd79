// SPDX-License-Identifier: Apache-2.0
// What the runtime needs of an accelerator to call handlers that are written for
// it: memory, copies, a stream, and to know when the stream is idle. CUDA stands
// behind it in kernels/cuda/device.h; tests put host memory there.
//
// A device belongs to one device of one program; several threads may allocate.
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
  // Where the stream is busy it may still use it: it is given out again after a Wait.
  void Free(void* memory);
  // Keeps `owner` until a Wait has seen the stream idle.
  void Hold(std::shared_ptr<const void> owner);
  // Until the stream is idle. kDeadlineExceeded past the deadline; what was freed
  // or held stays then, since the stream may come to it yet.
  absl::Status Wait(absl::Duration deadline);

  // What handlers keep for this device and its stream, such as a library's handle. It
  // ends with the device, unless the stream is still busy then.
  KeptStates& kept() { return *kept_; }

  // The platform's handle, a cudaStream_t.
  virtual void* stream() = 0;
  // Makes the device the calling thread's, before a handler runs on it.
  virtual absl::Status Activate() = 0;
  // On the stream; the host's memory stays until a Wait.
  virtual absl::Status CopyIn(void* to, const void* from_host, int64_t bytes) = 0;
  virtual absl::Status CopyWithin(void* to, const void* from, int64_t bytes) = 0;
  // To the host at once, after a Wait.
  virtual absl::Status CopyOut(void* to_host, const void* from, int64_t bytes) = 0;

 protected:
  virtual absl::StatusOr<void*> AllocateMemory(int64_t bytes) = 0;
  virtual void ReleaseMemory(void* memory) = 0;
  virtual absl::StatusOr<bool> IsIdle() = 0;
  // For destructors of derived classes: what was kept or not used up is released, unless
  // the stream is still busy with it.
  void ReleaseAll();

 private:
  std::mutex mutex_;
  std::map<void*, int64_t> sizes_;      // of all that AllocateMemory gave
  std::multimap<int64_t, void*> idle_;  // by size
  std::vector<void*> freed_;            // since the last Wait
  std::vector<std::shared_ptr<const void>> held_;
  std::shared_ptr<KeptStates> kept_ = std::make_shared<KeptStates>();
};

// Opens the device that partition `ordinal` of a program uses; with `stream`
// (null: one of its own) its work goes on that stream, which outlives it.
using HandlerDeviceOpener =
    std::function<absl::StatusOr<std::shared_ptr<HandlerDevice>>(int ordinal, void* stream)>;

}  // namespace shardcall

#endif  // SHARDCALL_KERNELS_FFI_HANDLER_DEVICE_H_
