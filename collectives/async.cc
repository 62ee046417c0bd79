// SPDX-License-Identifier: Apache-2.0
#include "collectives/async.h"

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
  {
    std::lock_guard<std::mutex> lock(mutex_);
    jobs_.push_back(job);
  }
  if (!thread_.joinable()) thread_ = std::thread([this] { Work(); });
  started_.notify_one();
  return std::make_unique<Ticket>(*this, std::move(job));
}

void AsyncCommunicator::Work() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    started_.wait(lock, [&] { return stop_ || !jobs_.empty(); });
    if (jobs_.empty()) return;
    const std::shared_ptr<Job> job = jobs_.front();
    lock.unlock();
    absl::Status status = job->call(inner_);
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

absl::Status AsyncCommunicator::Barrier(Group group, CollectiveTag tag) {
  Drain();
  return inner_.Barrier(group, tag);
}

absl::Status AsyncCommunicator::AllReduce(Group group, ReduceKind kind, ElementType type,
                                          const void* in, void* out, int64_t count,
                                          CollectiveTag tag) {
  Drain();
  return inner_.AllReduce(group, kind, type, in, out, count, tag);
}

absl::Status AsyncCommunicator::ReduceScatter(Group group, ReduceKind kind, ElementType type,
                                              const void* in, void* out, int64_t count,
                                              CollectiveTag tag) {
  Drain();
  return inner_.ReduceScatter(group, kind, type, in, out, count, tag);
}

absl::Status AsyncCommunicator::AllGather(Group group, const void* in, void* out, int64_t bytes,
                                          CollectiveTag tag) {
  Drain();
  return inner_.AllGather(group, in, out, bytes, tag);
}

absl::Status AsyncCommunicator::AllToAll(Group group, const void* in, void* out, int64_t bytes,
                                         CollectiveTag tag) {
  Drain();
  return inner_.AllToAll(group, in, out, bytes, tag);
}

absl::Status AsyncCommunicator::AllToAllV(Group group, const void* in,
                                          absl::Span<const int64_t> send_offsets,
                                          absl::Span<const int64_t> send_sizes, void* out,
                                          absl::Span<const int64_t> recv_offsets,
                                          absl::Span<const int64_t> recv_sizes,
                                          CollectiveTag tag) {
  Drain();
  return inner_.AllToAllV(group, in, send_offsets, send_sizes, out, recv_offsets, recv_sizes, tag);
}

absl::Status AsyncCommunicator::Permute(absl::Span<const std::pair<int, int>> pairs,
                                        const void* in, void* out, int64_t bytes,
                                        CollectiveTag tag) {
  Drain();
  return inner_.Permute(pairs, in, out, bytes, tag);
}

absl::Status AsyncCommunicator::Broadcast(Group group, int root, void* buffer, int64_t bytes,
                                          CollectiveTag tag) {
  Drain();
  return inner_.Broadcast(group, root, buffer, bytes, tag);
}

absl::Status AsyncCommunicator::Send(int to, const void* data, int64_t bytes, CollectiveTag tag) {
  Drain();
  return inner_.Send(to, data, bytes, tag);
}

absl::Status AsyncCommunicator::Recv(int from, void* data, int64_t bytes, CollectiveTag tag) {
  Drain();
  return inner_.Recv(from, data, bytes, tag);
}

}  // namespace shardcall
