// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/runtime/execute/device_threads.h"

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "shardcall/sharding/base/of_this_process.h"

namespace shardcall {
inline namespace internal {
namespace {

constexpr size_t kMostIdle = 64;
constexpr auto kLongestIdle = std::chrono::seconds(10);

struct Worker {
  std::condition_variable called;
  std::function<void()> work;  // under the mutex of Idle
};

// The threads without work, which wait in it.
struct Idle {
  // Nobody catches what a thread throws that becomes idle, so that there is room for all.
  Idle() { workers.reserve(kMostIdle); }

  std::mutex mutex;
  std::vector<Worker*> workers;

  // Waits until the worker has work. False if it got none for long.
  bool Await(Worker* self) {
    std::unique_lock<std::mutex> lock(mutex);
    if (workers.size() >= kMostIdle) return false;
    workers.push_back(self);
    const auto has_work = [self] { return self->work != nullptr; };
    if (self->called.wait_for(lock, kLongestIdle, has_work)) return true;
    std::erase(workers, self);
    return false;
  }

  // Gives the work to the thread that has been idle for the shortest time. False if none is.
  bool Give(std::function<void()>* work) {
    const std::lock_guard<std::mutex> lock(mutex);
    if (workers.empty()) return false;
    Worker* const worker = workers.back();
    workers.pop_back();
    worker->work = std::move(*work);
    worker->called.notify_one();
    return true;
  }
};

void Work(const std::unique_ptr<Worker>& self) {
  do {
    const std::function<void()> work = std::exchange(self->work, nullptr);
    work();
  } while (OfThisProcess<Idle>()->Await(self.get()));
}

}  // namespace

void RunOnDeviceThread(std::function<void()> work) {
  if (OfThisProcess<Idle>()->Give(&work)) return;
  auto worker = std::make_unique<Worker>();
  worker->work = std::move(work);
  std::thread([worker = std::move(worker)] { Work(worker); }).detach();
}

}  // namespace internal
}  // namespace shardcall
