// SPDX-License-Identifier: Apache-2.0
// How ranks meet over MPI: before any bulk data each sends every partner a
// header that says what it calls, with short data behind it in the same
// message. So an absent rank is known by name, a disagreement is found before a
// byte moves, and a short collective takes one message per partner.
#ifndef SHARDCALL_COLLECTIVES_MPI_RENDEZVOUS_H_
#define SHARDCALL_COLLECTIVES_MPI_RENDEZVOUS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "collectives/call.h"
#include "collectives/mpi_session.h"

namespace shardcall {

// Data up to this size travels with the header, in one eager message.
inline constexpr int64_t kInlineBytes = 3 << 10;

enum class MpiRole : uint8_t { kMember, kSender, kReceiver };

// One meeting of this rank with another within a call.
struct MpiPartner {
  int rank = 0;
  MpiRole role = MpiRole::kMember;  // of this rank
  int64_t send_bytes = 0;           // to the partner, in all
  int64_t receive_bytes = 0;
  const void* send_data = nullptr;  // sent here if send_bytes <= kInlineBytes
  const char* received = nullptr;   // out: the data if receive_bytes <= kInlineBytes
};

class MpiRendezvous {
 public:
  MpiRendezvous(MpiSession& session, absl::Duration patience)
      : session_(session), patience_(patience), last_seen_(session.size()) {}

  struct Meeting {
    CallSignature signature;
    uint64_t group_hash = 0;  // of the ranks in group order
    absl::string_view name;
    int64_t number = 0;
  };

  // Meets all partners. Of two meetings with one rank, the one as sender stands
  // first. `received` points into the session's receive area. Any error is final
  // and has been told to all ranks.
  absl::Status Meet(const Meeting& meeting, absl::Span<MpiPartner> partners);

  // The status for bulk data that partners `pending` did not move in time.
  absl::Status Stalled(const Meeting& meeting, const std::vector<int>& pending) const;

 private:
  struct Header {
    CallSignature signature;
    MpiRole role;
    uint64_t group_hash;
    int64_t send_bytes;
    int64_t receive_bytes;
    int64_t number;
    char name[40];
  };
  static constexpr int64_t kHeaderBytes = (sizeof(Header) + 15) / 16 * 16;
  static constexpr int64_t kMessageBytes = kHeaderBytes + kInlineBytes;

  static Header HeaderFor(const Meeting& meeting, const MpiPartner& partner);
  static bool Agree(const Header& mine, const Header& theirs);
  static std::string HeaderText(const Header& header, bool with_sizes);
  absl::Status Late(const Meeting& meeting, absl::Span<const MpiPartner> partners,
                    const std::vector<int>& pending) const;
  std::string LastSeenText(int rank) const;

  MpiSession& session_;
  const absl::Duration patience_;
  std::vector<Header> last_seen_;  // by rank; number 0 if never
};

}  // namespace shardcall

#endif  // SHARDCALL_COLLECTIVES_MPI_RENDEZVOUS_H_
