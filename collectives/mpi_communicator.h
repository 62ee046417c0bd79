// SPDX-License-Identifier: Apache-2.0
// The MPI backend. Each call meets its partners (mpi_rendezvous.h), which moves
// short data too, then moves long data from buffer to buffer. Messages go
// directly between the members, so no MPI communicator per group is needed,
// whose making would block without a deadline.
//
// A long all-reduce is cut into pieces, each an all-to-all of chunks, a fold of
// one chunk in group order, and an all-gather of the results.
#ifndef SHARDCALL_COLLECTIVES_MPI_COMMUNICATOR_H_
#define SHARDCALL_COLLECTIVES_MPI_COMMUNICATOR_H_

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "collectives/call.h"
#include "collectives/communicator.h"
#include "collectives/mpi_messages.h"
#include "collectives/mpi_rendezvous.h"
#include "collectives/mpi_session.h"

namespace shardcall {

class MpiCommunicator final : public Communicator {
 public:
  MpiCommunicator(MpiSession& session, absl::Duration deadline)
      : session_(session), deadline_(deadline), rendezvous_(session, deadline) {}

  absl::string_view backend() const override { return "mpi"; }
  int rank() const override { return session_.rank(); }
  int size() const override { return session_.size(); }

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
  void Abort(const absl::Status& reason) override { session_.Abort(reason); }

 private:
  struct Members {
    std::vector<int> ranks;  // in group order
    int me = 0;              // position of this rank
    uint64_t hash = 0;
    int count() const { return static_cast<int>(ranks.size()); }
  };
  // A call under way. `partners` are the other members, in group order.
  struct Call {
    const Members* members = nullptr;
    MpiRendezvous::Meeting meeting;
    std::vector<MpiPartner> partners;
  };

  absl::StatusOr<const Members*> FindMembers(Group group);
  // Checks the arguments, fills call.members and its meeting, and runs `body`
  // under the session's lock, recorded.
  absl::Status Run(Group group, const CallSignature& signature, CollectiveTag tag,
                   const std::function<absl::Status(Call&)>& body);
  absl::Status Recorded(const CallSignature& signature, absl::Span<const int> ranks,
                        CollectiveTag tag,
                        const std::function<absl::Status(const MpiRendezvous::Meeting&)>& body);
  // What goes to one other member and comes from it.
  struct Block {
    const char* send = nullptr;
    int64_t send_bytes = 0;
    int64_t receive_bytes = 0;
  };
  // Meets all other members.
  absl::Status Meet(Call& call, const std::function<Block(int)>& block_of);
  // Data that came with member j's header; only if short.
  static const char* Received(const Call& call, int j);

  // Awaits bulk messages; failures are told to all.
  absl::Status Await(const MpiRendezvous::Meeting& meeting, MpiMessages& messages);

  // The same with the place where what comes is put; for this rank itself too.
  struct Transfer {
    const char* send = nullptr;
    int64_t send_bytes = 0;
    char* receive = nullptr;
    int64_t receive_bytes = 0;
  };
  // Meets all other members and moves all blocks, short or long. A block that is
  // received must not overlap one that is sent.
  absl::Status Exchange(Call& call, const std::function<Transfer(int)>& transfer_of);

  absl::Status LongAllReduce(Call& call, const char* in, char* out);
  absl::Status LongReduceScatter(Call& call, const char* in, char* out);
  absl::Status PointToPoint(CollectiveOp op, int partner, void* data, int64_t bytes,
                            CollectiveTag tag);

  MpiSession& session_;
  const absl::Duration deadline_;
  MpiRendezvous rendezvous_;
  std::map<std::vector<int>, Members> members_;
};

}  // namespace shardcall

#endif  // SHARDCALL_COLLECTIVES_MPI_COMMUNICATOR_H_
