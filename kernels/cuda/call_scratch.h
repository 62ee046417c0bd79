// SPDX-License-Identifier: Apache-2.0
// Memory that a handler for CUDA needs while its work is on the stream.
#ifndef SHARDCALL_KERNELS_CUDA_CALL_SCRATCH_H_
#define SHARDCALL_KERNELS_CUDA_CALL_SCRATCH_H_

#include <vector>

#include "absl/status/statusor.h"
#include "shardcall/kernels/cuda/library_status.h"
#include "shardcall/kernels/ffi/handler.h"

namespace shardcall::inline internal {

// Given back at the end of the call, and given out again once the stream was idle.
class CallScratch {
 public:
  explicit CallScratch(HandlerDevice& device) : device_(device) {}
  CallScratch(const CallScratch&) = delete;
  CallScratch& operator=(const CallScratch&) = delete;
  ~CallScratch() {
    for (void* memory : memory_) device_.Free(memory);
  }
  // Aligned to 256 bytes; null for 0 of them.
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

// Where a library writes a result that it may not write over an operand: in the result's
// place, or, where an operand lies there, in scratch memory, copied by Finish.
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

}  // namespace shardcall::inline internal

#endif  // SHARDCALL_KERNELS_CUDA_CALL_SCRATCH_H_
