// SPDX-License-Identifier: Apache-2.0
#include "collectives/mpi_rendezvous.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "collectives/mpi_messages.h"
#include "collectives/report.h"

namespace shardcall {
namespace {

constexpr int kHeaderTag = 1;

}  // namespace

MpiRendezvous::Header MpiRendezvous::HeaderFor(const Meeting& meeting, const MpiPartner& partner) {
  Header header;
  std::memset(static_cast<void*>(&header), 0, sizeof(header));
  header.signature = meeting.signature;
  header.role = partner.role;
  header.group_hash = meeting.group_hash;
  header.send_bytes = partner.send_bytes;
  header.receive_bytes = partner.receive_bytes;
  header.number = meeting.number;
  std::copy_n(meeting.name.begin(), std::min(meeting.name.size(), sizeof(header.name) - 1),
              header.name);
  return header;
}

bool MpiRendezvous::Agree(const Header& mine, const Header& theirs) {
  if (mine.send_bytes != theirs.receive_bytes || mine.receive_bytes != theirs.send_bytes) {
    return false;
  }
  const auto role = mine.role == MpiRole::kSender     ? MpiRole::kReceiver
                    : mine.role == MpiRole::kReceiver ? MpiRole::kSender
                                                      : MpiRole::kMember;
  if (theirs.role != role) return false;
  CallSignature expected = mine.signature;
  if (expected.op == CollectiveOp::kSend) {
    expected.op = CollectiveOp::kRecv;
  } else if (expected.op == CollectiveOp::kRecv) {
    expected.op = CollectiveOp::kSend;
  }
  return theirs.signature == expected && theirs.group_hash == mine.group_hash;
}

std::string MpiRendezvous::HeaderText(const Header& header, bool with_sizes) {
  std::string text = absl::StrCat(SignatureText(header.signature), TagText(header.name));
  if (with_sizes) {
    absl::StrAppend(&text, " in group ", absl::Hex(header.group_hash), " with ", header.send_bytes,
                    " bytes to and ", header.receive_bytes, " bytes from its partner");
  }
  return text;
}

absl::Status MpiRendezvous::Meet(const Meeting& meeting, absl::Span<MpiPartner> partners) {
  const int n = static_cast<int>(partners.size());
  char* const outgoing = session_.SendArea(n * kMessageBytes);
  char* const incoming = session_.ReceiveArea(n * kMessageBytes);
  const auto header_at = [](char* area, int i) {
    Header header;
    std::memcpy(static_cast<void*>(&header), area + i * kMessageBytes, sizeof(header));
    return header;
  };

  MpiMessages messages(session_);
  // Of two meetings with one rank, its header as sender comes first, and that is
  // for this rank's meeting as receiver: hence the other order.
  for (int i = n - 1; i >= 0; --i) {
    messages.Receive(partners[i].rank, kHeaderTag, incoming + i * kMessageBytes, kMessageBytes, i);
  }
  for (int i = 0; i < n; ++i) {
    const MpiPartner& partner = partners[i];
    char* const message = outgoing + i * kMessageBytes;
    const Header header = HeaderFor(meeting, partner);
    std::memcpy(message, &header, sizeof(header));
    int64_t bytes = kHeaderBytes;
    if (partner.send_bytes > 0 && partner.send_bytes <= kInlineBytes) {
      std::memcpy(message + kHeaderBytes, partner.send_data, partner.send_bytes);
      bytes += partner.send_bytes;
    }
    messages.Send(partner.rank, kHeaderTag, message, bytes);
  }

  bool agreed = true;
  std::vector<bool> here(n, false);
  const absl::Status status = messages.Await(patience_, [&](int i, int64_t) {
    here[i] = true;
    const Header theirs = header_at(incoming, i);
    last_seen_[partners[i].rank] = theirs;
    agreed = agreed && Agree(HeaderFor(meeting, partners[i]), theirs);
    return agreed;
  });
  if (!agreed) {
    // Calls that look equal differ in their group or in the sizes of blocks.
    for (const bool with_sizes : {false, true}) {
      std::vector<MemberText> texts = {
          {session_.rank(), HeaderText(HeaderFor(meeting, partners[0]), with_sizes)}};
      bool differ = false;
      for (int i = 0; i < n; ++i) {
        if (!here[i]) continue;
        const Header theirs = header_at(incoming, i);
        // In full only the partners that disagree, as each pair has sizes of its own.
        if (with_sizes) {
          const Header mine = HeaderFor(meeting, partners[i]);
          if (Agree(mine, theirs)) continue;
          texts = {{session_.rank(), HeaderText(mine, true)}};
        }
        texts.push_back({partners[i].rank, HeaderText(theirs, with_sizes)});
        differ = differ || texts.back().text != texts.front().text;
        if (with_sizes) break;
      }
      if (!differ && !with_sizes) continue;
      std::sort(texts.begin(), texts.end(),
                [](const MemberText& a, const MemberText& b) { return a.rank < b.rank; });
      return session_.Fail(MismatchStatus(texts));
    }
  }
  if (absl::IsDeadlineExceeded(status) && status.message().empty()) {
    return session_.Fail(Late(meeting, partners, messages.pending_peers()));
  }
  if (!status.ok()) return session_.Fail(status);
  for (int i = 0; i < n; ++i) {
    partners[i].received = incoming + i * kMessageBytes + kHeaderBytes;
  }
  return absl::OkStatus();
}

absl::Status MpiRendezvous::Late(const Meeting& meeting, absl::Span<const MpiPartner> partners,
                                 const std::vector<int>& pending) const {
  LateReport report;
  report.signature = meeting.signature;
  report.number = meeting.number;
  report.name = meeting.name;
  report.waiting = {session_.rank()};
  for (const MpiPartner& partner : partners) {
    if (!std::binary_search(pending.begin(), pending.end(), partner.rank) &&
        partner.rank != report.waiting.back()) {
      report.waiting.push_back(partner.rank);
    }
  }
  report.absent = pending;
  report.waited = patience_;
  for (int rank : pending) report.last.push_back(LastSeenText(rank));
  report.history = session_.recorder().History(absl::StrCat("  rank ", session_.rank(), " "));
  return LateStatus(report);
}

absl::Status MpiRendezvous::Stalled(const Meeting& meeting, const std::vector<int>& pending) const {
  LateReport report;
  report.signature = meeting.signature;
  report.number = meeting.number;
  report.name = meeting.name;
  report.waiting = {session_.rank()};
  report.absent = pending;
  report.waited = patience_;
  for (size_t i = 0; i < pending.size(); ++i) {
    report.last.push_back("has called, but its data does not move");
  }
  return LateStatus(report);
}

std::string MpiRendezvous::LastSeenText(int rank) const {
  const Header& header = last_seen_[rank];
  if (header.number == 0) return "is absent and was never met";
  return absl::StrCat("is absent and was last met in ", SignatureText(header.signature), " #",
                      header.number, TagText(header.name));
}

}  // namespace shardcall
