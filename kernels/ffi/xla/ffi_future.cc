// SPDX-License-Identifier: Apache-2.0
#include "shardcall/kernels/ffi/xla/ffi_future.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "shardcall/sharding/base/of_this_process.h"
#include "shardcall/sharding/base/steady_time.h"

namespace shardcall::abi {
struct Future {
  bool done = false;
  bool abandoned = false;
  absl::Status status;
  std::shared_ptr<const void> keep;
};
}  // namespace shardcall::abi

namespace shardcall {
inline namespace internal {

namespace {

// One lock for all futures: they are rare, and it is held briefly.
struct LiveFutures {
  std::mutex mutex;
  std::condition_variable completed;
  absl::flat_hash_map<const void*, std::unique_ptr<abi::Future>> futures;
};
LiveFutures& Live() { return *OfThisProcess<LiveFutures>(); }

std::atomic<uintptr_t> last_handle{0};

}  // namespace

abi::Future* NewFfiFuture() {
  // A handle is a number, not an address: if a reused address were set twice, that would complete
  // another future.
  const std::lock_guard lock(Live().mutex);
  auto* const handle = reinterpret_cast<abi::Future*>(++last_handle << 4);
  Live().futures[handle] = std::make_unique<abi::Future>();
  return handle;
}

void CompleteFfiFuture(const void* future, absl::Status status) {
  std::unique_ptr<abi::Future> ended;  // outlives the lock: it may own buffers
  const std::lock_guard lock(Live().mutex);
  auto it = Live().futures.find(future);
  if (it == Live().futures.end() || it->second->done) return;
  it->second->done = true;
  it->second->status = std::move(status);
  if (it->second->abandoned) {
    ended = std::move(it->second);
    Live().futures.erase(it);
  }
  Live().completed.notify_all();
}

FutureEnd AwaitFfiFuture(const void* future, absl::Duration deadline,
                         const std::shared_ptr<const void>& keep, absl::Status* status) {
  std::unique_lock lock(Live().mutex);
  auto it = Live().futures.find(future);
  if (it == Live().futures.end() || it->second->abandoned) return FutureEnd::kNotAFuture;
  abi::Future& waited = *it->second;  // its address is stable when the table grows
  if (!Live().completed.wait_for(lock,
                                 absl::ToChronoNanoseconds(std::min(deadline, kLongestTimedWait)),
                                 [&] { return waited.done; })) {
    waited.abandoned = true;
    waited.keep = keep;
    return FutureEnd::kDeadline;
  }
  *status = std::move(waited.status);
  Live().futures.erase(future);
  return FutureEnd::kDone;
}

}  // namespace internal
}  // namespace shardcall
