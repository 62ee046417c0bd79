// SPDX-License-Identifier: Apache-2.0
// The MPI backend. Messages go directly between the members' buffers, so no MPI communicator per
// group is needed; making one would block without a deadline. mpi_rendezvous.h finds members that
// are absent or disagree.
//
// A short all-reduce gathers and folds. A long one is split into pieces, each an all-to-all of
// chunks, a fold of one chunk in group order, and an all-gather of the results.
#ifndef SHARDCALL_COLLECTIVES_MPI_MPI_COMMUNICATOR_H_
#define SHARDCALL_COLLECTIVES_MPI_MPI_COMMUNICATOR_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/functional/function_ref.h"
#include "absl/hash/hash.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "shardcall/collectives/backend.h"
#include "shardcall/collectives/call.h"
#include "shardcall/collectives/communicator.h"
#include "shardcall/collectives/mpi/mpi_messages.h"
#include "shardcall/collectives/mpi/mpi_rendezvous.h"
#include "shardcall/collectives/mpi/mpi_session.h"

namespace shardcall {
inline namespace internal {

class MpiCommunicator final : public BackendCommunicator {
 public:
  MpiCommunicator(MpiSession& session, absl::Duration deadline, bool check_every_call)
      : session_(session), rendezvous_(session, deadline, check_every_call) {}

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
  absl::Status Broadcast(Group group, int root, void* buffer, int64_t bytes,
                         CollectiveTag tag) override;
  void SetProgramNote(absl::string_view note) override {
    session_.set_program_note(std::string(note));
  }
  absl::Status Told() override {
    std::lock_guard<std::mutex> lock(session_.call_mutex());
    return session_.Poll();
  }
  void BeginWait() override { waits_elsewhere_.emplace(); }
  void EndWait() override { waits_elsewhere_.reset(); }
  Departures FindDeparted(Group group) override;
  void Abort(const absl::Status& reason) override { session_.Abort(reason); }

 protected:
  absl::Status PermuteWith(const CallSignature& signature, int source, int target, const void* in,
                           void* out, CollectiveTag tag) override;
  absl::Status PointToPoint(const CallSignature& signature, int partner, void* data,
                            CollectiveTag tag) override;

 private:
  struct Members {
    std::vector<int> ranks;  // in group order
    int me = 0;              // position of this rank
    uint64_t hash = 0;
    int count() const { return static_cast<int>(ranks.size()); }
  };
  // A call in progress. `partners` are the other members, in group order.
  struct Call {
    const Members* members = nullptr;
    MpiMeeting meeting;
    absl::InlinedVector<MpiPartner, 16> partners;
  };
  // For lookup of a vector by a span.
  struct RanksHash {
    using is_transparent = void;
    size_t operator()(absl::Span<const int> ranks) const { return absl::HashOf(ranks); }
  };
  struct RanksEqual {
    using is_transparent = void;
    bool operator()(absl::Span<const int> a, absl::Span<const int> b) const { return a == b; }
  };

  absl::StatusOr<const Members*> FindMembers(Group group);
  // Checks the arguments, fills call.members and its meeting, and runs `body` under the session's
  // lock and with a flight record.
  absl::Status Run(Group group, const CallSignature& signature, CollectiveTag tag,
                   absl::FunctionRef<absl::Status(Call&)> body);
  absl::Status Recorded(const CallSignature& signature, absl::Span<const int> ranks,
                        CollectiveTag tag, absl::FunctionRef<absl::Status(const MpiMeeting&)> body);

  // The blocks to and from member j; for this rank itself too.
  struct Transfer {
    const char* send = nullptr;
    int64_t send_bytes = 0;
    char* receive = nullptr;
    int64_t receive_bytes = 0;
  };
  // Moves all blocks; the caller begins and ends the rendezvous. A received block must not overlap
  // one that is sent.
  absl::Status Move(Call& call, absl::FunctionRef<Transfer(int)> transfer_of);
  // Begins the rendezvous, moves all blocks and ends it.
  absl::Status Exchange(Call& call, absl::FunctionRef<Transfer(int)> transfer_of);
  // Begins the rendezvous with all other members as partners, with the same number of bytes each.
  absl::Status BeginWithAll(Call& call, int64_t bytes);

  absl::Status ShortAllReduce(Call& call, const char* in, char* out);
  absl::Status LongAllReduce(Call& call, const char* in, char* out);
  absl::Status LongReduceScatter(Call& call, const char* in, char* out);

  MpiSession& session_;
  std::optional<MpiSession::Waiting> waits_elsewhere_;
  MpiRendezvous rendezvous_;
  // Values are pointers, so that they stay in place while others are added.
  absl::flat_hash_map<std::vector<int>, std::unique_ptr<Members>, RanksHash, RanksEqual> members_;
};

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_COLLECTIVES_MPI_MPI_COMMUNICATOR_H_
