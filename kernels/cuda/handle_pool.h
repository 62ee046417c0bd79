// SPDX-License-Identifier: Apache-2.0
// Handles of a library of the CUDA toolkit. To make one may allocate on the GPU and wait
// for all that runs there, so they stay for the process: a device takes one of its GPU,
// and gives it back at its end, once its stream is idle. There are as many as devices
// were ever open at once.
#ifndef SHARDCALL_KERNELS_CUDA_HANDLE_POOL_H_
#define SHARDCALL_KERNELS_CUDA_HANDLE_POOL_H_

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "shardcall/kernels/ffi/handler_device.h"

namespace shardcall::inline internal {

struct PooledHandle {
  void* handle = nullptr;
  std::mutex mutex;  // for calls that libraries do not take from two threads at once
};

// Lives for ever.
class HandlePool {
 public:
  using Maker = absl::FunctionRef<absl::StatusOr<void*>()>;
  // The device's, which is the current one of the thread: one that is left over, or
  // what `make` makes.
  absl::StatusOr<std::shared_ptr<PooledHandle>> Of(HandlerDevice& device, Maker make);

 private:
  std::mutex mutex_;
  std::vector<std::pair<int, PooledHandle*>> idle_;  // by GPU
};

}  // namespace shardcall::inline internal

#endif  // SHARDCALL_KERNELS_CUDA_HANDLE_POOL_H_
