// SPDX-License-Identifier: Apache-2.0
// A set of messages in flight that are awaited together, with a deadline.
#ifndef SHARDCALL_COLLECTIVES_MPI_MPI_MESSAGES_H_
#define SHARDCALL_COLLECTIVES_MPI_MPI_MESSAGES_H_

#include <mpi.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "shardcall/collectives/mpi/mpi_session.h"

namespace shardcall {
inline namespace internal {

class MpiMessages {
 public:
  explicit MpiMessages(MpiSession& session) : session_(session) {}

  // Posts a message; one of more than kMaxMessageBytes is sent in parts. A synchronous send
  // completes only when the receiver has matched it. Await reports errors. Buffers must stay valid
  // until Await has returned OK.
  void Send(int to, int tag, const void* data, int64_t bytes, bool synchronous = false);
  void Receive(int from, int tag, void* data, int64_t bytes);

  // Called now and then while nothing arrives, with the time since the last progress; an error
  // that it returns ends the wait.
  using Watch = std::function<absl::Status(absl::Duration idle)>;

  // Waits until all messages have completed. E307 where MPI fails.
  absl::Status Await(const Watch& watch);

  // Ranks whose messages are missing, or else those that have not received ours; sorted, without
  // duplicates.
  std::vector<int> pending_peers() const;

 private:
  static constexpr int64_t kMaxMessageBytes = int64_t{1} << 30;
  struct Record {
    int peer;
    bool receives;
    int bytes;
  };
  enum class Kind { kSend, kSynchronousSend, kReceive };
  void Post(Kind kind, int peer, int tag, void* data, int64_t bytes);
  void CancelReceives();

  MpiSession& session_;
  absl::InlinedVector<MPI_Request, 16> requests_;
  absl::InlinedVector<Record, 16> records_;
  absl::Status post_error_;
};

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_COLLECTIVES_MPI_MPI_MESSAGES_H_
