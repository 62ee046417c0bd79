// SPDX-License-Identifier: Apache-2.0
#include "shardcall/collectives/mpi/mpi_rendezvous.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "shardcall/collectives/report.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace {

constexpr int kHeaderTag = 0;  // tags of data start at 1
// After this wait a rank sends its header, and then checks at this interval the processes that it
// waits for; earlier if the deadline is short.
constexpr absl::Duration kUnusualWait = absl::Milliseconds(50);

bool Holds(const std::vector<int>& sorted, int rank) {
  return std::binary_search(sorted.begin(), sorted.end(), rank);
}

}  // namespace

MpiRendezvous::MpiRendezvous(MpiSession& session, absl::Duration patience, bool check_every_call)
    : session_(session), patience_(patience), check_every_call_(check_every_call) {}

absl::Status MpiRendezvous::Begin(const MpiMeeting& meeting,
                                  absl::Span<const MpiPartner> partners) {
  meeting_ = meeting;
  partners_ = partners;
  announced_ = false;
  heard_seen_ = -1;
  next_look_ = std::min(kUnusualWait, patience_ / 4);
  for (const MpiPartner& partner : partners) ++session_.meetings(partner.rank);
  return check_every_call_ && !partners.empty() ? ExchangeHeaders() : absl::OkStatus();
}

int MpiRendezvous::SendTag(const MpiPartner& partner) const {
  return MessageTag(meeting_, session_.rank(), partner.rank, partner.send_bytes);
}

int MpiRendezvous::ReceiveTag(const MpiPartner& partner) const {
  return MessageTag(meeting_, partner.rank, session_.rank(), partner.receive_bytes);
}

void MpiRendezvous::End() {
  for (const MpiPartner& partner : partners_) session_.met(partner.rank) = HeaderTo(partner);
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
  return MpiHeaderFor(meeting_, partner, session_.meetings(partner.rank));
}

void MpiRendezvous::Announce() {
  announced_ = true;
  for (const MpiPartner& partner : partners_) session_.Tell(partner.rank, HeaderTo(partner));
}

const MpiHeader* MpiRendezvous::Heard(const MpiPartner& partner) const {
  const MpiHeader& header = session_.heard(partner.rank);
  // Otherwise it is about an earlier call, or about one that this rank has not reached yet.
  return header.number > 0 && header.meeting == session_.meetings(partner.rank) ? &header : nullptr;
}

absl::Status MpiRendezvous::CheckHeard() const {
  std::vector<Pair> pairs;
  for (const MpiPartner& partner : partners_) {
    const MpiHeader* const theirs = Heard(partner);
    if (theirs != nullptr) pairs.push_back({partner.rank, HeaderTo(partner), *theirs});
  }
  // Another rank may still wait in a call that this rank has finished, for example because it
  // expects a block of another size.
  for (int rank = 0; rank < session_.size(); ++rank) {
    const MpiHeader& theirs = session_.heard(rank);
    if (theirs.number > 0 && theirs.meeting == session_.met(rank).meeting) {
      pairs.push_back({rank, session_.met(rank), theirs});
    }
  }
  const bool agreed = std::all_of(pairs.begin(), pairs.end(),
                                  [](const Pair& pair) { return Agree(pair.mine, pair.theirs); });
  return agreed ? absl::OkStatus() : Mismatch(pairs);
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
  std::vector<Pair> pairs;
  for (size_t i = 0; i < n; ++i) pairs.push_back({partners_[i].rank, mine[i], theirs[i]});
  const bool agreed = std::all_of(pairs.begin(), pairs.end(),
                                  [](const Pair& pair) { return Agree(pair.mine, pair.theirs); });
  return agreed ? absl::OkStatus() : session_.Fail(Mismatch(pairs));
}

absl::Status MpiRendezvous::Mismatch(absl::Span<const Pair> pairs) const {
  const auto wrong = std::find_if(pairs.begin(), pairs.end(),
                                  [](const Pair& pair) { return !Agree(pair.mine, pair.theirs); });
  // Calls with equal texts differ in their group or in the sizes of blocks.
  const bool looks_equal = HeaderText(wrong->mine, false) == HeaderText(wrong->theirs, false);
  std::vector<MemberText> texts = {{session_.rank(), HeaderText(wrong->mine, looks_equal)},
                                   {wrong->rank, HeaderText(wrong->theirs, looks_equal)}};
  // Add other ranks only if they are in the same call, and if the difference is not in the sizes
  // of blocks.
  for (const Pair& pair : pairs) {
    if (looks_equal || pair.rank == wrong->rank || pair.mine.number != wrong->mine.number) continue;
    texts.push_back({pair.rank, HeaderText(pair.theirs, false)});
  }
  std::sort(texts.begin(), texts.end(),
            [](const MemberText& a, const MemberText& b) { return a.rank < b.rank; });
  return MismatchStatus(texts, History(session_.rank()));
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
  if (report.absent.empty()) {  // all are in the call, but no data arrives
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
  return ToStatus({.code = "E304",
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
    return absl::StrCat(state == MpiPeers::State::kStopped ? "is stopped; it " : "", log.Summary());
  }
  const MpiHeader& met = session_.met(rank);
  const char* const what = state == MpiPeers::State::kEnded     ? "has ended"
                           : state == MpiPeers::State::kStopped ? "is stopped"
                                                                : "is absent";
  if (met.number == 0) return absl::StrCat(what, " and was never met");
  return absl::StrCat(what, " and was last met in ", SignatureText(met.signature), " #", met.number,
                      TagText(met.name));
}

std::string MpiRendezvous::History(int rank) const {
  FlightLog log;
  if (rank != session_.rank() && session_.peers().ReadLog(rank, &log)) {
    return log.History(absl::StrCat("  rank ", rank, " "));
  }
  return session_.recorder().History(absl::StrCat("  rank ", session_.rank(), " "));
}

}  // namespace internal
}  // namespace shardcall
