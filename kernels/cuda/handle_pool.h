// SPDX-License-Identifier: Apache-2.0
// Handles of a library of the CUDA toolkit. Creating one may allocate on the GPU and wait for all
// its work, so they are kept for the life of the process. A device takes a handle for its GPU and
// returns it when it is closed, once its stream is idle. There are as many as devices were ever
// open at once.
#ifndef SHARDCALL_KERNELS_CUDA_HANDLE_POOL_H_
#define SHARDCALL_KERNELS_CUDA_HANDLE_POOL_H_

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "shardcall/kernels/ffi/handler_device.h"

namespace shardcall {
inline namespace internal {

struct PooledHandle {
  void* handle = nullptr;
  std::mutex mutex;  // hold it for functions that are not thread-safe
};

// Never destroyed.
class HandlePool {
 public:
  using Maker = absl::FunctionRef<absl::StatusOr<void*>()>;
  // A handle for the device, which must be the thread's current one: an idle handle, or a new one
  // from `make`.
  absl::StatusOr<std::shared_ptr<PooledHandle>> Of(HandlerDevice& device, Maker make);

 private:
  std::mutex mutex_;
  std::vector<std::pair<int, PooledHandle*>> idle_;  // by GPU
};

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_KERNELS_CUDA_HANDLE_POOL_H_
