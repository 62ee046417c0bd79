// SPDX-License-Identifier: Apache-2.0
// What a rank says to a partner of the call it is in: the signature, the group,
// what the two move between them, and how many calls they have begun together.
#ifndef SHARDCALL_COLLECTIVES_MPI_MPI_HEADER_H_
#define SHARDCALL_COLLECTIVES_MPI_MPI_HEADER_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "shardcall/collectives/call.h"

namespace shardcall {

// Which way data goes between two ranks of a call, seen from one of them.
enum class MpiRole : uint8_t { kBoth, kSender, kReceiver };

struct MpiPartner {
  int rank = 0;
  MpiRole role = MpiRole::kBoth;
  int64_t send_bytes = 0;  // to the partner, in all
  int64_t receive_bytes = 0;
};

// One call of this rank, as far as its partners are told.
struct MpiMeeting {
  CallSignature signature;
  uint64_t group_hash = 0;  // of the ranks in group order
  absl::string_view name;
  int64_t number = 0;  // at this rank
};

// Sent as it lies in memory, between equal programs.
struct MpiHeader {
  CallSignature signature;
  MpiRole role;
  uint64_t group_hash;
  int64_t send_bytes;
  int64_t receive_bytes;
  int64_t number;   // of the call, at the sender; 0: nothing was said yet
  int64_t meeting;  // calls that both ranks have begun together, this one too
  char name[40];
};

MpiHeader MpiHeaderFor(const MpiMeeting& meeting, const MpiPartner& partner, int64_t count);
// Whether two ranks of a pair are in the same call, told by each to the other.
bool Agree(const MpiHeader& mine, const MpiHeader& theirs);
// "all-reduce(sum, f32[8]) (%ar)"; with_sizes adds group and bytes.
std::string HeaderText(const MpiHeader& header, bool with_sizes);
// The tag of the messages of a call from one rank to another: equal if both
// agree, else most likely not. 1 to 2^30.
int MessageTag(const MpiMeeting& meeting, int from, int to, int64_t bytes);

}  // namespace shardcall

#endif  // SHARDCALL_COLLECTIVES_MPI_MPI_HEADER_H_
