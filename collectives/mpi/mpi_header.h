// SPDX-License-Identifier: Apache-2.0
// The description of a call that a rank sends to a partner: the signature, the group, the bytes
// that the two exchange, and how many calls they have begun together.
#ifndef SHARDCALL_COLLECTIVES_MPI_MPI_HEADER_H_
#define SHARDCALL_COLLECTIVES_MPI_MPI_HEADER_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "shardcall/collectives/call.h"

namespace shardcall {
inline namespace internal {

// The direction of data between two ranks of a call, as seen by one of them.
enum class MpiRole : uint8_t { kBoth, kSender, kReceiver };

struct MpiPartner {
  int rank = 0;
  MpiRole role = MpiRole::kBoth;
  int64_t send_bytes = 0;  // to the partner, in all
  int64_t receive_bytes = 0;
};

// A call of this rank, as its partners are told.
struct MpiMeeting {
  CallSignature signature;
  uint64_t group_hash = 0;  // of the ranks in group order
  absl::string_view name;
  int64_t number = 0;  // at this rank
};

// Sent as raw memory, since all ranks run the same build.
struct MpiHeader {
  CallSignature signature;
  MpiRole role;
  uint64_t group_hash;
  int64_t send_bytes;
  int64_t receive_bytes;
  int64_t number;   // of the call, at the sender; 0: no header received yet
  int64_t meeting;  // number of calls that both ranks have begun together, including this one
  char name[40];
};

MpiHeader MpiHeaderFor(const MpiMeeting& meeting, const MpiPartner& partner, int64_t count);
// Whether two ranks are in the same call, by the headers they sent each other.
bool Agree(const MpiHeader& mine, const MpiHeader& theirs);
// "all-reduce(sum, f32[8]) (%ar)"; with_sizes adds group and bytes.
std::string HeaderText(const MpiHeader& header, bool with_sizes);
// The tag of a call's messages from one rank to another: equal if both agree, else different with
// high probability. In [1, 2^30].
int MessageTag(const MpiMeeting& meeting, int from, int to, int64_t bytes);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_COLLECTIVES_MPI_MPI_HEADER_H_
