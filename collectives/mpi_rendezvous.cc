// SPDX-License-Identifier: Apache-2.0
#include "collectives/mpi_rendezvous.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "collectives/report.h"
#include "sharding/status.h"

namespace shardcall {
namespace {

constexpr int kHeaderTag = 0;  // data have tags from 1 on
// A rank tells what it calls after this wait, and looks at the processes it
// waits for as often; earlier where the deadline is short.
constexpr absl::Duration kUnusualWait = absl::Milliseconds(50);

bool Holds(const std::vector<int>& sorted, int rank) {
  return std::binary_search(sorted.begin(), sorted.end(), rank);
}

}  // namespace

MpiRendezvous::MpiRendezvous(MpiSession& session, absl::Duration patience, bool check_every_call)
    : session_(session),
      patience_(patience),
      check_every_call_(check_every_call),
      meetings_(session.size(), 0),
      met_(session.size()) {}

absl::Status MpiRendezvous::Begin(const MpiMeeting& meeting,
                                  absl::Span<const MpiPartner> partners) {
  meeting_ = meeting;
  partners_ = partners;
  announced_ = false;
  heard_seen_ = -1;
  next_look_ = std::min(kUnusualWait, patience_ / 4);
  for (const MpiPartner& partner : partners) ++meetings_[partner.rank];
  return check_every_call_ && !partners.empty() ? ExchangeHeaders() : absl::OkStatus();
}

int MpiRendezvous::SendTag(const MpiPartner& partner) const {
  return MessageTag(meeting_, session_.rank(), partner.rank, partner.send_bytes);
}

int MpiRendezvous::ReceiveTag(const MpiPartner& partner) const {
  return MessageTag(meeting_, partner.rank, session_.rank(), partner.receive_bytes);
}

void MpiRendezvous::End() {
  for (const MpiPartner& partner : partners_) {
    Met& met = met_[partner.rank];
    met.signature = meeting_.signature;
    met.number = meeting_.number;
    const size_t length = std::min(meeting_.name.size(), sizeof(met.name) - 1);
    std::copy_n(meeting_.name.begin(), length, met.name);
    met.name[length] = '\0';
  }
  partners_ = {};
}

absl::Status MpiRendezvous::Await(MpiMessages& messages) {
  const MpiSession::Waiting waiting;
  const absl::Status status =
      messages.Await([&](absl::Duration idle) { return Watch(idle, messages); });
  return status.ok() ? status : session_.Fail(status);
}

absl::Status MpiRendezvous::Watch(absl::Duration idle, const MpiMessages& messages) {
  SHARDCALL_RETURN_IF_ERROR(session_.Poll());
  if (heard_seen_ != session_.heard_count()) {
    heard_seen_ = session_.heard_count();
    SHARDCALL_RETURN_IF_ERROR(CheckHeard());
  }
  if (MpiSession::terminated()) return Gone(messages.pending_peers(), true);
  if (idle < next_look_) return absl::OkStatus();
  next_look_ = idle + kUnusualWait;
  if (!announced_) Announce();
  const std::vector<int> pending = messages.pending_peers();
  if (idle >= patience_) return Late(idle, pending);
  for (int rank : pending) {
    if (session_.peers().StateOf(rank) == MpiPeers::State::kEnded) return Gone(pending, false);
  }
  return absl::OkStatus();
}

MpiHeader MpiRendezvous::HeaderTo(const MpiPartner& partner) const {
  return MpiHeaderFor(meeting_, partner, meetings_[partner.rank]);
}

void MpiRendezvous::Announce() {
  announced_ = true;
  for (const MpiPartner& partner : partners_) session_.Tell(partner.rank, HeaderTo(partner));
}

const MpiHeader* MpiRendezvous::Heard(const MpiPartner& partner) const {
  const MpiHeader& header = session_.heard(partner.rank);
  // Else it speaks of an earlier call, or of one that this rank comes to later.
  return header.number > 0 && header.meeting == meetings_[partner.rank] ? &header : nullptr;
}

absl::Status MpiRendezvous::CheckHeard() const {
  std::vector<const MpiHeader*> theirs;
  bool agreed = true;
  for (const MpiPartner& partner : partners_) {
    theirs.push_back(Heard(partner));
    agreed = agreed && (theirs.back() == nullptr || Agree(HeaderTo(partner), *theirs.back()));
  }
  return agreed ? absl::OkStatus() : Mismatch(theirs);
}

absl::Status MpiRendezvous::ExchangeHeaders() {
  const size_t n = partners_.size();
  std::vector<MpiHeader> mine;
  MpiHeader* const theirs =
      reinterpret_cast<MpiHeader*>(session_.ReceiveArea(n * sizeof(MpiHeader)));
  char* const outgoing = session_.SendArea(n * sizeof(MpiHeader));
  for (const MpiPartner& partner : partners_) mine.push_back(HeaderTo(partner));
  std::memcpy(outgoing, mine.data(), n * sizeof(MpiHeader));
  MpiMessages messages(session_);
  for (size_t i = 0; i < n; ++i) {
    messages.Receive(partners_[i].rank, kHeaderTag, &theirs[i], sizeof(MpiHeader));
  }
  for (size_t i = 0; i < n; ++i) {
    messages.Send(partners_[i].rank, kHeaderTag, outgoing + i * sizeof(MpiHeader),
                  sizeof(MpiHeader));
  }
  SHARDCALL_RETURN_IF_ERROR(Await(messages));
  std::vector<const MpiHeader*> heard;
  bool agreed = true;
  for (size_t i = 0; i < n; ++i) {
    heard.push_back(&theirs[i]);
    agreed = agreed && Agree(mine[i], theirs[i]);
  }
  return agreed ? absl::OkStatus() : session_.Fail(Mismatch(heard));
}

absl::Status MpiRendezvous::Mismatch(absl::Span<const MpiHeader* const> theirs) const {
  // Calls that look equal differ in their group or in the sizes of blocks.
  for (const bool with_sizes : {false, true}) {
    std::vector<MemberText> texts = {
        {session_.rank(), HeaderText(HeaderTo(partners_[0]), with_sizes)}};
    bool differ = false;
    for (size_t i = 0; i < partners_.size(); ++i) {
      if (theirs[i] == nullptr) continue;
      // In full only a partner that disagrees, as each pair has sizes of its own.
      if (with_sizes) {
        const MpiHeader mine = HeaderTo(partners_[i]);
        if (Agree(mine, *theirs[i])) continue;
        texts = {{session_.rank(), HeaderText(mine, true)}};
      }
      texts.push_back({partners_[i].rank, HeaderText(*theirs[i], with_sizes)});
      differ = differ || texts.back().text != texts.front().text;
      if (with_sizes) break;
    }
    if (!differ && !with_sizes) continue;
    std::sort(texts.begin(), texts.end(),
              [](const MemberText& a, const MemberText& b) { return a.rank < b.rank; });
    return MismatchStatus(texts, History(session_.rank()));
  }
  return absl::OkStatus();
}

absl::Status MpiRendezvous::Late(absl::Duration idle, const std::vector<int>& pending) const {
  LateReport report;
  report.signature = meeting_.signature;
  report.number = meeting_.number;
  report.name = meeting_.name;
  report.waiting = {session_.rank()};
  for (const MpiPartner& partner : partners_) {
    const bool here = !Holds(pending, partner.rank) || Heard(partner) != nullptr;
    (here ? report.waiting : report.absent).push_back(partner.rank);
  }
  if (report.absent.empty()) {  // all are in the call, and data do not move
    report.waiting = {session_.rank()};
    report.absent = pending;
  }
  report.waited = std::max(patience_, absl::Trunc(idle, absl::Milliseconds(1)));
  for (int rank : report.absent) report.last.push_back(Describe(rank));
  report.programs = session_.program_note();
  report.history = History(report.absent.front());
  return LateStatus(report);
}

absl::Status MpiRendezvous::Gone(const std::vector<int>& pending, bool terminated) const {
  const std::string call = absl::StrCat(SignatureText(meeting_.signature), " #", meeting_.number,
                                        TagText(meeting_.name));
  std::vector<std::string> described;
  for (int rank : pending) {
    const bool ended = session_.peers().StateOf(rank) == MpiPeers::State::kEnded;
    if (terminated || ended) described.push_back(absl::StrCat("rank ", rank, " ", Describe(rank)));
  }
  return ToStatus(
      {.code = "E304",
       .message = absl::StrCat(
           terminated ? "the launcher ends this job (SIGTERM) while " : "", call,
           terminated ? " waits: " : ": ", absl::StrJoin(described, "; ")),
       .fix = "See what the process that ended printed, and how it ended",
       .excerpt = History(session_.rank())},
      absl::StatusCode::kUnavailable);
}

std::string MpiRendezvous::Describe(int rank) const {
  const MpiPeers::State state = session_.peers().StateOf(rank);
  FlightLog log;
  if (state != MpiPeers::State::kEnded && session_.peers().ReadLog(rank, &log)) {
    return absl::StrCat(state == MpiPeers::State::kStopped ? "is stopped; it " : "",
                        log.Summary());
  }
  const Met& met = met_[rank];
  const char* const what = state == MpiPeers::State::kEnded     ? "has ended"
                           : state == MpiPeers::State::kStopped ? "is stopped"
                                                                : "is absent";
  if (met.number == 0) return absl::StrCat(what, " and was never met");
  return absl::StrCat(what, " and was last met in ", SignatureText(met.signature), " #",
                      met.number, TagText(met.name));
}

std::string MpiRendezvous::History(int rank) const {
  FlightLog log;
  if (rank != session_.rank() && session_.peers().ReadLog(rank, &log)) {
    return log.History(absl::StrCat("  rank ", rank, " "));
  }
  return session_.recorder().History(absl::StrCat("  rank ", session_.rank(), " "));
}

}  // namespace shardcall
