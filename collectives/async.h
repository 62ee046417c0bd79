// SPDX-License-Identifier: Apache-2.0
// Start and Done for backends whose calls block: one thread per rank makes the started calls, in
// order, while the rank computes.
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

#include "absl/status/status.h"
#include "shardcall/collectives/communicator.h"
#include "shardcall/collectives/forwarding.h"
#include "shardcall/sharding/base/public.h"

namespace shardcall SHARDCALL_PUBLIC {

// `inner` must outlive this object and be used only through it. One thread at a time may use it,
// except for Abort. Ordinary calls wait until all started ones are done, and then run on the
// caller's thread.
class AsyncCommunicator final : public ForwardingCommunicator {
 public:
  explicit AsyncCommunicator(Communicator& inner) : ForwardingCommunicator(inner) {}
  ~AsyncCommunicator() override;  // waits for all started calls

  std::unique_ptr<Pending> Start(Call call) override;

 private:
  struct Job {
    Call call;
    bool over = false;
    absl::Status status;
  };
  class Ticket;

  void Before() override { Drain(); }
  // Waits until all started calls are done.
  void Drain();
  bool HasThread();
  void Work();

  std::mutex mutex_;
  std::condition_variable started_, finished_;
  std::deque<std::shared_ptr<Job>> jobs_;  // the first one is running
  bool stop_ = false;
  std::thread thread_;  // from the first Start on
};

}  // namespace shardcall

#endif  // SHARDCALL_COLLECTIVES_ASYNC_H_
