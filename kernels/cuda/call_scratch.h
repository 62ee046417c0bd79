// SPDX-License-Identifier: Apache-2.0
// Device memory that a handler for CUDA needs until its work on the stream is done.
#ifndef SHARDCALL_KERNELS_CUDA_CALL_SCRATCH_H_
#define SHARDCALL_KERNELS_CUDA_CALL_SCRATCH_H_

#include <vector>

#include "absl/status/statusor.h"
#include "shardcall/kernels/cuda/library_status.h"
#include "shardcall/kernels/ffi/handler.h"

namespace shardcall {
inline namespace internal {

// Released at the end of the call; reused once the stream is idle.
class CallScratch {
 public:
  explicit CallScratch(HandlerDevice& device) : device_(device) {}
  CallScratch(const CallScratch&) = delete;
  CallScratch& operator=(const CallScratch&) = delete;
  ~CallScratch() {
    for (void* memory : memory_) device_.Free(memory);
  }
  // Aligned to 256 bytes; null for 0 bytes.
  absl::StatusOr<void*> New(int64_t bytes) {
    absl::StatusOr<void*> made = device_.Allocate(bytes);
    if (!made.ok()) return DeviceStatus(made.status());
    if (*made != nullptr) memory_.push_back(*made);
    return made;
  }

 private:
  HandlerDevice& device_;
  std::vector<void*> memory_;
};

// The place of a result that a library must not write over an operand: the result's buffer, or, if
// that is also an operand's, scratch memory that Finish copies.
class ResultPlace {
 public:
  static absl::StatusOr<ResultPlace> Of(const BufferView& result, absl::Span<const BufferView> read,
                                        CallScratch& scratch) {
    ResultPlace place{result.data, result.data, result.byte_size()};
    for (const BufferView& operand : read) {
      if (operand.data != result.data) continue;
      absl::StatusOr<void*> made = scratch.New(result.byte_size());
      if (!made.ok()) return made.status();
      place.data = *made;
      break;
    }
    return place;
  }
  absl::Status Finish(HandlerDevice& device) const {
    return data == result ? absl::OkStatus() : DeviceStatus(device.CopyWithin(result, data, bytes));
  }

  void *data, *result;
  int64_t bytes;
};

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_KERNELS_CUDA_CALL_SCRATCH_H_
