// SPDX-License-Identifier: Apache-2.0
#include "shardcall/kernels/ffi/thread_pool.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

namespace shardcall::inline internal {
namespace {

class Pool {
 public:
  bool Schedule(std::function<void()> task) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      // Start a thread if the task would have to wait, up to the limit.
      if (idle_ <= static_cast<int>(tasks_.size()) && threads_ < FfiPoolThreads()) {
        try {
          std::thread([this] { Work(); }).detach();
          ++threads_;
        } catch (const std::system_error&) {
          if (threads_ == 0) return false;
        }
      }
      tasks_.push_back(std::move(task));
    }
    ready_.notify_one();
    return true;
  }

 private:
  void Work() {
    std::unique_lock<std::mutex> lock(mutex_);
    while (true) {
      ++idle_;
      ready_.wait(lock, [this] { return !tasks_.empty(); });
      --idle_;
      const std::function<void()> task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      task();
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable ready_;
  std::deque<std::function<void()>> tasks_;
  int threads_ = 0;
  int idle_ = 0;
};

}  // namespace

int FfiPoolThreads() {
  static const int threads = std::max(2, static_cast<int>(std::thread::hardware_concurrency()));
  return threads;
}

namespace {

// One per process, never destroyed, since threads may outlive main. A forked child does not have
// its parent's threads, so it makes a pool of its own.
std::atomic<Pool*> pool{nullptr};

Pool& ThePool() {
  static const int forks = pthread_atfork(nullptr, nullptr, [] { pool = nullptr; });
  (void)forks;
  Pool* known = pool;
  if (known != nullptr) return *known;
  auto made = std::make_unique<Pool>();
  return pool.compare_exchange_strong(known, made.get()) ? *made.release() : *known;
}

}  // namespace

bool ScheduleOnFfiPool(std::function<void()> task) { return ThePool().Schedule(std::move(task)); }

}  // namespace shardcall::inline internal
