// SPDX-License-Identifier: Apache-2.0
#include "shardcall/collectives/mpi/mpi_header.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace shardcall {
inline namespace internal {
namespace {

uint64_t Mix(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
  return hash ^ (hash >> 29);
}

// A send matches a receive.
CollectiveOp Normal(CollectiveOp op) {
  return op == CollectiveOp::kRecv ? CollectiveOp::kSend : op;
}

}  // namespace

MpiHeader MpiHeaderFor(const MpiMeeting& meeting, const MpiPartner& partner, int64_t count) {
  MpiHeader header;
  std::memset(static_cast<void*>(&header), 0, sizeof(header));
  header.signature = meeting.signature;
  header.role = partner.role;
  header.group_hash = meeting.group_hash;
  header.send_bytes = partner.send_bytes;
  header.receive_bytes = partner.receive_bytes;
  header.number = meeting.number;
  header.meeting = count;
  std::copy_n(meeting.name.begin(), std::min(meeting.name.size(), sizeof(header.name) - 1),
              header.name);
  return header;
}

bool Agree(const MpiHeader& mine, const MpiHeader& theirs) {
  if (mine.send_bytes != theirs.receive_bytes || mine.receive_bytes != theirs.send_bytes) {
    return false;
  }
  const auto role = mine.role == MpiRole::kSender     ? MpiRole::kReceiver
                    : mine.role == MpiRole::kReceiver ? MpiRole::kSender
                                                      : MpiRole::kBoth;
  CallSignature expected = mine.signature;
  if (expected.op == CollectiveOp::kSend) {
    expected.op = CollectiveOp::kRecv;
  } else if (expected.op == CollectiveOp::kRecv) {
    expected.op = CollectiveOp::kSend;
  }
  return theirs.role == role && theirs.signature == expected &&
         theirs.group_hash == mine.group_hash;
}

std::string HeaderText(const MpiHeader& header, bool with_sizes) {
  std::string text = absl::StrCat(SignatureText(header.signature), TagText(header.name));
  if (with_sizes) {
    absl::StrAppend(&text, " in group ", absl::Hex(header.group_hash), " with ", header.send_bytes,
                    " bytes to and ", header.receive_bytes, " bytes from its partner");
  }
  return text;
}

int MessageTag(const MpiMeeting& meeting, int from, int to, int64_t bytes) {
  const CallSignature& s = meeting.signature;
  uint64_t hash =
      Mix(0, static_cast<uint64_t>(Normal(s.op)) | static_cast<uint64_t>(s.kind) << 8 |
                 static_cast<uint64_t>(s.type) << 16 | static_cast<uint64_t>(s.root + 1) << 32);
  hash = Mix(hash, static_cast<uint64_t>(s.amount));
  hash = Mix(hash, meeting.group_hash);
  hash = Mix(hash, static_cast<uint64_t>(from) << 32 | static_cast<uint64_t>(to));
  hash = Mix(hash, static_cast<uint64_t>(bytes));
  return static_cast<int>(hash >> 34) + 1;
}

}  // namespace internal
}  // namespace shardcall
