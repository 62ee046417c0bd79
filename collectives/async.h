// SPDX-License-Identifier: Apache-2.0
// Start and Done for backends whose calls need a thread: one thread per rank
// makes the calls that were started, in order, while the rank computes.
//
//   AsyncCommunicator async(comm);
//   auto pending = async.Start([&](Communicator& c) { return c.AllGather(...); });
//   ...
//   absl::Status status = pending->Done();
#ifndef SHARDCALL_COLLECTIVES_ASYNC_H_
#define SHARDCALL_COLLECTIVES_ASYNC_H_

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "collectives/communicator.h"

namespace shardcall {

// `inner` outlives it, and is used through it alone. One thread at a time may
// use it, but for Abort. Ordinary calls wait until those that were started are
// over, and then run on the caller's thread.
class AsyncCommunicator final : public Communicator {
 public:
  explicit AsyncCommunicator(Communicator& inner) : inner_(inner) {}
  ~AsyncCommunicator() override;  // awaits what was started

  absl::string_view backend() const override { return inner_.backend(); }
  int rank() const override { return inner_.rank(); }
  int size() const override { return inner_.size(); }

  absl::Status Barrier(Group group, CollectiveTag tag) override;
  absl::Status AllReduce(Group group, ReduceKind kind, ElementType type, const void* in, void* out,
                         int64_t count, CollectiveTag tag) override;
  absl::Status ReduceScatter(Group group, ReduceKind kind, ElementType type, const void* in,
                             void* out, int64_t count, CollectiveTag tag) override;
  absl::Status AllGather(Group group, const void* in, void* out, int64_t bytes,
                         CollectiveTag tag) override;
  absl::Status AllToAll(Group group, const void* in, void* out, int64_t bytes,
                        CollectiveTag tag) override;
  absl::Status AllToAllV(Group group, const void* in, absl::Span<const int64_t> send_offsets,
                         absl::Span<const int64_t> send_sizes, void* out,
                         absl::Span<const int64_t> recv_offsets,
                         absl::Span<const int64_t> recv_sizes, CollectiveTag tag) override;
  absl::Status Permute(absl::Span<const std::pair<int, int>> pairs, const void* in, void* out,
                       int64_t bytes, CollectiveTag tag) override;
  absl::Status Broadcast(Group group, int root, void* buffer, int64_t bytes,
                         CollectiveTag tag) override;
  absl::Status Send(int to, const void* data, int64_t bytes, CollectiveTag tag) override;
  absl::Status Recv(int from, void* data, int64_t bytes, CollectiveTag tag) override;
  std::unique_ptr<Pending> Start(Call call) override;
  void SetProgramNote(absl::string_view note) override { inner_.SetProgramNote(note); }
  void Abort(const absl::Status& reason) override { inner_.Abort(reason); }

 private:
  struct Job {
    Call call;
    bool over = false;
    absl::Status status;
  };
  class Ticket;

  // Until all that was started is over.
  void Drain();
  void Work();

  Communicator& inner_;
  std::mutex mutex_;
  std::condition_variable started_, finished_;
  std::deque<std::shared_ptr<Job>> jobs_;  // the first one runs
  bool stop_ = false;
  std::thread thread_;  // from the first Start on
};

}  // namespace shardcall

#endif  // SHARDCALL_COLLECTIVES_ASYNC_H_
