// SPDX-License-Identifier: Apache-2.0
#include "shardcall/kernels/ffi/thread_pool.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "shardcall/sharding/base/of_this_process.h"

namespace shardcall {
inline namespace internal {
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
// From load on: a child that is forked at the first use would wait for another thread to make it.
[[maybe_unused]] const int at_load = FfiPoolThreads();
}  // namespace

bool ScheduleOnFfiPool(std::function<void()> task) {
  return OfThisProcess<Pool>()->Schedule(std::move(task));
}

}  // namespace internal
}  // namespace shardcall
