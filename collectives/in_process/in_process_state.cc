// SPDX-License-Identifier: Apache-2.0
#include "shardcall/collectives/in_process/in_process_state.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall::inline internal {

InProcessState::InProcessState(int size, absl::Duration deadline)
    : deadline_(deadline), recorders_(size), joined_(size, false) {}

InProcessGroup* InProcessState::FindGroup(absl::Span<const int> ranks) {
  std::vector<int> sorted(ranks.begin(), ranks.end());
  std::sort(sorted.begin(), sorted.end());
  std::lock_guard<std::mutex> lock(mutex_);
  std::unique_ptr<InProcessGroup>& group = groups_[sorted];
  if (group == nullptr) {
    group = std::make_unique<InProcessGroup>(std::move(sorted), absl::MakeSpan(recorders_));
    if (!aborted_.ok()) group->Fail(aborted_);
    for (int rank : left_) {
      if (group->Holds(rank)) group->Fail(LeftStatus(rank));
    }
  }
  return group.get();
}

InProcessPair* InProcessState::FindPair(int sender, int receiver) {
  std::lock_guard<std::mutex> lock(mutex_);
  std::unique_ptr<InProcessPair>& pair = pairs_[{sender, receiver}];
  if (pair == nullptr) {
    pair = std::make_unique<InProcessPair>(sender, receiver, absl::MakeSpan(recorders_));
    if (!aborted_.ok()) pair->Fail(aborted_);
    for (int rank : left_) {
      if (pair->Holds(rank)) pair->Fail(LeftStatus(rank));
    }
  }
  return pair.get();
}

void InProcessState::Join(int rank) {
  std::lock_guard<std::mutex> lock(mutex_);
  SHARDCALL_CHECK(rank >= 0 && rank < size() && !joined_[rank]);
  joined_[rank] = true;
}

void InProcessState::Leave(int rank) {
  recorders_[rank].Leave();
  std::lock_guard<std::mutex> lock(mutex_);
  left_.push_back(rank);
  const absl::Status status = LeftStatus(rank);
  for (auto& [ranks, group] : groups_) {
    if (group->Holds(rank)) group->Fail(status);
  }
  for (auto& [ranks, pair] : pairs_) {
    if (pair->Holds(rank)) pair->Fail(status);
  }
}

void InProcessState::Abort(const absl::Status& reason) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (!aborted_.ok()) return;
  aborted_ = AbortedStatus(reason);
  for (auto& [ranks, group] : groups_) group->Fail(aborted_);
  for (auto& [ranks, pair] : pairs_) pair->Fail(aborted_);
}

absl::Status InProcessState::aborted() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return aborted_;
}

absl::Status InProcessState::LeftStatus(int rank) const {
  return ToStatus({.code = "E304",
                   .message = absl::StrCat("a collective needs rank ", rank, ", which ",
                                           recorders_[rank].Summary()),
                   .fix = "See why that device stopped: its own error says so",
                   .excerpt = recorders_[rank].History(absl::StrCat("  rank ", rank, " "))},
                  absl::StatusCode::kUnavailable);
}

}  // namespace shardcall::inline internal
