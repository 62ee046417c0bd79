// SPDX-License-Identifier: Apache-2.0
#include "tests/collectives/stand_in/stream.h"

#include <chrono>
#include <thread>
#include <utility>

namespace stand_in {

void Stream::Start() {
  std::thread([self = shared_from_this()] { self->Run(); }).detach();
}

void Stream::Run() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return closed_ || !steps_.empty(); });
    if (steps_.empty()) return;
    Step& step = steps_.front();  // stays where it is while others are pushed
    lock.unlock();
    for (int tries = 0; !step(); ++tries) {
      if (tries < 200) {
        std::this_thread::yield();
      } else {
        std::this_thread::sleep_for(std::chrono::microseconds(50));
      }
    }
    step = nullptr;
    lock.lock();
    steps_.pop_front();
    changed_.notify_all();
  }
}

void Stream::Push(Step step) {
  std::lock_guard<std::mutex> lock(mutex_);
  steps_.push_back(std::move(step));
  changed_.notify_all();
}

bool Stream::Idle() {
  std::lock_guard<std::mutex> lock(mutex_);
  return steps_.empty();
}

void Stream::AwaitIdle() {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [&] { return steps_.empty(); });
}

void Stream::Close() {
  std::lock_guard<std::mutex> lock(mutex_);
  closed_ = true;
  changed_.notify_all();
}

}  // namespace stand_in
