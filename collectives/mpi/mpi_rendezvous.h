// SPDX-License-Identifier: Apache-2.0
// How ranks synchronise over MPI. A call's messages are sent at once, with tags that are equal
// only if both ends agree on the call, so agreement costs no message. A rank that has waited for a
// while sends its header to all partners; from the headers it receives it finds out who disagrees,
// and at the deadline who is absent.
//
// With `check_every_call` ranks exchange headers before any data, and every
// member of a call in which two disagree gets E305 at once.
#ifndef SHARDCALL_COLLECTIVES_MPI_MPI_RENDEZVOUS_H_
#define SHARDCALL_COLLECTIVES_MPI_MPI_RENDEZVOUS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "shardcall/collectives/mpi/mpi_header.h"
#include "shardcall/collectives/mpi/mpi_messages.h"
#include "shardcall/collectives/mpi/mpi_session.h"

namespace shardcall {
inline namespace internal {

class MpiRendezvous {
 public:
  MpiRendezvous(MpiSession& session, absl::Duration patience, bool check_every_call);

  // Begins a call. `partners`, each rank once, stay valid until End.
  absl::Status Begin(const MpiMeeting& meeting, absl::Span<const MpiPartner> partners);
  // Tags of the messages to and from a partner of the current call.
  int SendTag(const MpiPartner& partner) const;
  int ReceiveTag(const MpiPartner& partner) const;
  // Awaits messages of the current call. Any error is final and has been sent to all ranks.
  absl::Status Await(MpiMessages& messages);
  // Ends the call, after all partners have taken part.
  void End();

 private:
  absl::Status ExchangeHeaders();
  absl::Status Watch(absl::Duration idle, const MpiMessages& messages);
  void Announce();
  MpiHeader HeaderTo(const MpiPartner& partner) const;
  // The header that the partner sent about the current call, or null.
  const MpiHeader* Heard(const MpiPartner& partner) const;
  absl::Status CheckHeard() const;
  // The headers of two ranks about one call.
  struct Pair {
    int rank;  // the other's
    MpiHeader mine, theirs;
  };
  absl::Status Mismatch(absl::Span<const Pair> pairs) const;
  absl::Status Late(absl::Duration idle, const std::vector<int>& pending) const;
  absl::Status Gone(const std::vector<int>& pending, bool terminated) const;
  std::string Describe(int rank) const;
  std::string History(int rank) const;

  MpiSession& session_;
  const absl::Duration patience_;
  const bool check_every_call_;

  MpiMeeting meeting_;
  absl::Span<const MpiPartner> partners_;
  bool announced_ = false;
  int64_t heard_seen_ = -1;
  absl::Duration next_look_;
};

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_COLLECTIVES_MPI_MPI_RENDEZVOUS_H_
