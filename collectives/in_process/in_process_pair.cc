// SPDX-License-Identifier: Apache-2.0
#include "shardcall/collectives/in_process/in_process_pair.h"

#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "shardcall/collectives/report.h"

namespace shardcall {
inline namespace internal {
namespace {

constexpr int kYields = 100;

}  // namespace

bool InProcessPair::Match(const CallSignature& send, const CallSignature& recv) {
  const bool is_send = send.op == CollectiveOp::kSend;
  const bool is_recv = recv.op == CollectiveOp::kRecv;
  return is_send == is_recv && send.amount == recv.amount;
}

void InProcessPair::Post(Side side, const CallSignature& signature, void* data,
                         absl::string_view name, int64_t number) {
  std::unique_lock<std::mutex> lock(mutex_);
  Offer& mine = offers_[side];
  Offer& other = offers_[Other(side)];
  mine.signature = signature;
  mine.data = data;
  mine.name = name;
  mine.number = number;
  if (!failure_.ok()) return mine.state.Store(kDead);
  mine.state.Store(kPosted);
  if (other.state.Load() != kPosted) return;

  const Offer& send = offers_[kSender];
  const Offer& recv = offers_[kReceiver];
  if (!Match(send.signature, recv.signature)) {
    const auto text = [](const Offer& offer) {
      return absl::StrCat(SignatureText(offer.signature), TagText(offer.name));
    };
    return FailLocked(
        MismatchStatus({{ranks_[kSender], text(send)}, {ranks_[kReceiver], text(recv)}}));
  }
  mine.state.Store(kCopying);
  other.state.Store(kCopying);
  lock.unlock();
  if (signature.amount > 0) std::memcpy(recv.data, send.data, signature.amount);
  mine.state.Store(kDone);
  other.state.StoreAndWakeAll(kDone);
}

absl::Status InProcessPair::Await(Side side, absl::Duration patience, MonotonicTime deadline) {
  Offer& mine = offers_[side];
  if (mine.state.AwaitChange(kPosted, deadline, kYields) == kPosted) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (mine.state.Load() == kPosted) {
      const int rank = ranks_[side];
      const int absent = ranks_[Other(side)];
      LateReport report;
      report.signature = mine.signature;
      report.number = mine.number;
      report.name = mine.name;
      report.waiting = {rank};
      report.absent = {absent};
      report.waited = patience;
      report.last = {recorders_[absent].Summary()};
      report.history = recorders_[absent].History(absl::StrCat("  rank ", absent, " "));
      FailLocked(LateStatus(report));
    }
  }
  mine.state.AwaitChange(kCopying, kNever);
  std::lock_guard<std::mutex> lock(mutex_);
  const bool dead = mine.state.Load() == kDead;
  mine.state.Store(kIdle);
  return dead ? failure_ : absl::OkStatus();
}

void InProcessPair::Withdraw(Side side, const absl::Status& reason) {
  Fail(reason);
  Await(side, absl::ZeroDuration(), kNever).IgnoreError();
}

void InProcessPair::Fail(const absl::Status& status) {
  std::lock_guard<std::mutex> lock(mutex_);
  FailLocked(status);
}

void InProcessPair::FailLocked(const absl::Status& status) {
  if (failure_.ok()) failure_ = status;
  for (Offer& offer : offers_) {
    if (offer.state.Load() == kPosted) offer.state.StoreAndWakeAll(kDead);
  }
}

}  // namespace internal
}  // namespace shardcall
