// SPDX-License-Identifier: Apache-2.0
#include "shardcall/collectives/async.h"

#include <system_error>
#include <utility>

namespace shardcall {

class AsyncCommunicator::Ticket final : public Communicator::Pending {
 public:
  Ticket(AsyncCommunicator& owner, std::shared_ptr<Job> job)
      : owner_(owner), job_(std::move(job)) {}
  ~Ticket() override { Done().IgnoreError(); }

  absl::Status Done() override {
    std::unique_lock<std::mutex> lock(owner_.mutex_);
    owner_.finished_.wait(lock, [&] { return job_->over; });
    return job_->status;
  }

 private:
  AsyncCommunicator& owner_;
  const std::shared_ptr<Job> job_;
};

AsyncCommunicator::~AsyncCommunicator() {
  Drain();
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
  }
  started_.notify_all();
  if (thread_.joinable()) thread_.join();
}

std::unique_ptr<Communicator::Pending> AsyncCommunicator::Start(Call call) {
  auto job = std::make_shared<Job>();
  job->call = std::move(call);
  if (!HasThread()) {
    job->status = job->call(inner());
    job->call = nullptr;
    job->over = true;
    return std::make_unique<Ticket>(*this, std::move(job));
  }
  {
    std::lock_guard<std::mutex> lock(mutex_);
    jobs_.push_back(job);
  }
  started_.notify_one();
  return std::make_unique<Ticket>(*this, std::move(job));
}

// A process that may not start another thread makes each call where it is started, as Communicator
// does by default.
bool AsyncCommunicator::HasThread() {
  if (thread_.joinable()) return true;
  try {
    thread_ = std::thread([this] { Work(); });
  } catch (const std::system_error&) {
    return false;
  }
  return true;
}

void AsyncCommunicator::Work() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    started_.wait(lock, [&] { return stop_ || !jobs_.empty(); });
    if (jobs_.empty()) return;
    const std::shared_ptr<Job> job = jobs_.front();
    lock.unlock();
    absl::Status status = job->call(inner());
    lock.lock();
    job->status = std::move(status);
    job->call = nullptr;
    job->over = true;
    jobs_.pop_front();
    finished_.notify_all();
  }
}

void AsyncCommunicator::Drain() {
  std::unique_lock<std::mutex> lock(mutex_);
  finished_.wait(lock, [&] { return jobs_.empty(); });
}

}  // namespace shardcall
