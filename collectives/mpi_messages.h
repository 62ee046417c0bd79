// SPDX-License-Identifier: Apache-2.0
// A set of messages under way at once, awaited together against a deadline.
#ifndef SHARDCALL_COLLECTIVES_MPI_MESSAGES_H_
#define SHARDCALL_COLLECTIVES_MPI_MESSAGES_H_

#include <mpi.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "collectives/mpi_session.h"

namespace shardcall {

class MpiMessages {
 public:
  explicit MpiMessages(MpiSession& session) : session_(session) {}

  // Posts a message; more than kMaxMessageBytes travel as several. `id` is for
  // the caller. Errors show in Await. Buffers stay until Await has returned OK.
  void Send(int to, int tag, const void* data, int64_t bytes);
  void Receive(int from, int tag, void* data, int64_t bytes, int id = 0);

  // Called with the id and the bytes of each message received.
  // Returning false says that the set makes no sense any more: the rest is then
  // awaited for a short while only.
  using Inspect = std::function<bool(int id, int64_t bytes)>;

  // Until all messages are through. `patience` counts from the last progress.
  // kDeadlineExceeded if it runs out: pending_peers() tells for whom. Other
  // errors are the session's failure, or E307.
  absl::Status Await(absl::Duration patience, const Inspect& inspect = nullptr);

  // Ranks from which a message is outstanding, else those that have not taken
  // one; sorted, each once.
  std::vector<int> pending_peers() const;

 private:
  static constexpr int64_t kMaxMessageBytes = int64_t{1} << 30;
  struct Record {
    int peer;
    bool receives;
    int id;
  };
  void Post(int peer, int tag, void* data, int64_t bytes, bool receives, int id);
  void CancelReceives();

  MpiSession& session_;
  std::vector<MPI_Request> requests_;
  std::vector<Record> records_;
  absl::Status post_error_;
};

}  // namespace shardcall

#endif  // SHARDCALL_COLLECTIVES_MPI_MESSAGES_H_
