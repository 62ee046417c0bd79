// SPDX-License-Identifier: Apache-2.0
#include "shardcall/kernels/cuda/handle_pool.h"

#include <cuda_runtime_api.h>

#include <algorithm>

#include "shardcall/kernels/cuda/library_status.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {

absl::StatusOr<std::shared_ptr<PooledHandle>> HandlePool::Of(HandlerDevice& device, Maker make) {
  const auto take = [&]() -> absl::StatusOr<std::shared_ptr<void>> {
    int gpu = 0;
    SHARDCALL_RETURN_IF_ERROR(RuntimeStatus(cudaGetDevice(&gpu), "cudaGetDevice"));
    PooledHandle* taken = nullptr;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      const auto found = std::find_if(idle_.begin(), idle_.end(),
                                      [gpu](const auto& left) { return left.first == gpu; });
      if (found != idle_.end()) {
        taken = found->second;
        idle_.erase(found);
      }
    }
    if (taken == nullptr) {
      SHARDCALL_ASSIGN_OR_RETURN(void* const made, make());
      taken = new PooledHandle;
      taken->handle = made;
    }
    return std::shared_ptr<void>(taken, [this, gpu](void* given_back) {
      const std::lock_guard<std::mutex> lock(mutex_);
      idle_.emplace_back(gpu, static_cast<PooledHandle*>(given_back));
    });
  };
  SHARDCALL_ASSIGN_OR_RETURN(std::shared_ptr<void> kept, device.kept().GetOrMake(this, take));
  return std::static_pointer_cast<PooledHandle>(std::move(kept));
}

}  // namespace internal
}  // namespace shardcall
