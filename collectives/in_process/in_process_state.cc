// SPDX-License-Identifier: Apache-2.0
#include "shardcall/collectives/in_process/in_process_state.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "shardcall/collectives/call.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {

InProcessState::InProcessState(int size, absl::Duration deadline)
    : deadline_(deadline),
      recorders_(size),
      joined_(size, false),
      left_(size, 0),
      groups_of_(size),
      pairs_of_(size) {}

absl::StatusOr<InProcessState::Meeting> InProcessState::FindGroup(absl::Span<const int> ranks,
                                                                  int rank) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto found = meetings_.find(ranks);
    if (found != meetings_.end() && found->second.group->Holds(rank)) return found->second;
  }
  SHARDCALL_RETURN_IF_ERROR(CheckGroup(ranks, rank, size()));
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found = meetings_.find(ranks);
  if (found != meetings_.end()) return found->second;
  const Meeting meeting = MakeMeeting(ranks);
  meetings_.emplace(absl::MakeConstSpan(meeting.order->ranks), meeting);
  return meeting;
}

InProcessState::Meeting InProcessState::MakeMeeting(absl::Span<const int> ranks) {
  std::vector<int> sorted(ranks.begin(), ranks.end());
  std::sort(sorted.begin(), sorted.end());
  auto it = groups_.find(sorted);
  if (it == groups_.end()) {
    auto group = std::make_unique<InProcessGroup>(sorted, absl::MakeSpan(recorders_));
    it = groups_.emplace(std::move(sorted), std::move(group)).first;
    InProcessGroup& made = *it->second;
    if (!aborted_.ok()) made.Fail(aborted_);
    const int left = FirstLeft(ranks);
    if (left >= 0) made.Fail(LeftStatus(left));
    for (int rank : ranks) groups_of_[rank].push_back(&made);
  }
  return {it->second.get(), it->second->InternOrder(ranks)};
}

absl::StatusOr<const InProcessState::Permutation*> InProcessState::FindPermutation(
    absl::Span<const Permutation::Pair> pairs) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto found = permutations_.find(pairs);
    if (found != permutations_.end()) return found->second.get();
  }
  int source, target;
  SHARDCALL_RETURN_IF_ERROR(FindPartners(pairs, 0, size(), &source, &target));
  auto permutation = std::make_unique<Permutation>();
  permutation->pairs.assign(pairs.begin(), pairs.end());
  permutation->source_of.assign(size(), -1);
  permutation->target_of.assign(size(), -1);
  for (const auto& [from, to] : pairs) {
    permutation->source_of[to] = from;
    permutation->target_of[from] = to;
  }
  std::lock_guard<std::mutex> lock(mutex_);
  const absl::Span<const Permutation::Pair> key = permutation->pairs;
  return permutations_.try_emplace(key, std::move(permutation)).first->second.get();
}

InProcessPair* InProcessState::FindPair(int sender, int receiver) {
  std::lock_guard<std::mutex> lock(mutex_);
  auto it = pairs_.find({sender, receiver});
  if (it == pairs_.end()) {
    auto pair = std::make_unique<InProcessPair>(sender, receiver, absl::MakeSpan(recorders_));
    it = pairs_.emplace(std::pair(sender, receiver), std::move(pair)).first;
    InProcessPair& made = *it->second;
    if (!aborted_.ok()) made.Fail(aborted_);
    const int ranks[] = {sender, receiver};
    const int left = FirstLeft(ranks);
    if (left >= 0) made.Fail(LeftStatus(left));
    for (int rank : ranks) pairs_of_[rank].push_back(&made);
  }
  return it->second.get();
}

void InProcessState::Join(int rank) {
  std::lock_guard<std::mutex> lock(mutex_);
  SHARDCALL_CHECK(rank >= 0 && rank < size() && !joined_[rank]);
  joined_[rank] = true;
}

void InProcessState::Leave(int rank) {
  recorders_[rank].Leave();
  std::lock_guard<std::mutex> lock(mutex_);
  left_[rank] = ++num_left_;
  if (groups_of_[rank].empty() && pairs_of_[rank].empty()) return;
  const absl::Status status = LeftStatus(rank);
  for (InProcessGroup* group : groups_of_[rank]) group->Fail(status);
  for (InProcessPair* pair : pairs_of_[rank]) pair->Fail(status);
}

int InProcessState::FirstLeft(absl::Span<const int> ranks) const {
  int first = -1;
  for (int rank : ranks) {
    if (left_[rank] > 0 && (first < 0 || left_[rank] < left_[first])) first = rank;
  }
  return first;
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

}  // namespace internal
}  // namespace shardcall
