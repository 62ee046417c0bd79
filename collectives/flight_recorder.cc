// SPDX-License-Identifier: Apache-2.0
#include "collectives/flight_recorder.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace shardcall {

int64_t FlightRecorder::Begin(const CallSignature& signature, absl::Span<const int> ranks,
                              absl::string_view name) {
  std::lock_guard<std::mutex> lock(mutex_);
  Entry& entry = entries_[++number_ % kEntries];
  entry.state = State::kWaiting;
  entry.signature = signature;
  entry.number = number_;
  entry.begun = std::chrono::steady_clock::now();
  entry.num_ranks = static_cast<int>(ranks.size());
  std::copy_n(ranks.begin(), std::min<size_t>(ranks.size(), kShownRanks), entry.ranks.begin());
  const size_t length = std::min(name.size(), entry.name.size() - 1);
  std::copy_n(name.begin(), length, entry.name.begin());
  entry.name[length] = '\0';
  return number_;
}

void FlightRecorder::End(bool ok) {
  std::lock_guard<std::mutex> lock(mutex_);
  entries_[number_ % kEntries].state = ok ? State::kDone : State::kFailed;
}

void FlightRecorder::Leave() {
  std::lock_guard<std::mutex> lock(mutex_);
  left_ = true;
}

int64_t FlightRecorder::last_number() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return number_;
}

std::string FlightRecorder::EntryText(const Entry& entry) {
  return absl::StrCat(SignatureText(entry.signature), " #", entry.number,
                      TagText(entry.name.data()));
}

std::string FlightRecorder::Summary() const {
  std::lock_guard<std::mutex> lock(mutex_);
  if (number_ == 0) return left_ ? "left without a call" : "has called no collective yet";
  const Entry& last = At(number_);
  std::string text;
  if (last.state == State::kWaiting) {
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - last.begun).count();
    return absl::StrCat(
        absl::StrFormat("has waited %.3g s in ", seconds), EntryText(last), " over ",
        RankListText(
            absl::MakeConstSpan(last.ranks).first(std::min<size_t>(last.num_ranks, kShownRanks))),
        last.num_ranks > kShownRanks ? ",..." : "");
  }
  return absl::StrCat(last.state == State::kDone ? "last completed " : "last failed in ",
                      EntryText(last), left_ ? " and has left" : " and is in no collective");
}

std::string FlightRecorder::History(absl::string_view prefix) const {
  std::lock_guard<std::mutex> lock(mutex_);
  std::string text;
  for (int64_t n = std::max<int64_t>(1, number_ - kEntries + 1); n <= number_; ++n) {
    const Entry& entry = At(n);
    constexpr absl::string_view kStates[] = {"", "waiting", "done", "failed"};
    absl::StrAppend(
        &text, text.empty() ? "" : "\n", prefix, "#", entry.number, " ",
        SignatureText(entry.signature), TagText(entry.name.data()), " over ",
        RankListText(
            absl::MakeConstSpan(entry.ranks).first(std::min<size_t>(entry.num_ranks, kShownRanks))),
        entry.num_ranks > kShownRanks ? ",..." : "", ": ", kStates[static_cast<int>(entry.state)]);
  }
  return text;
}

}  // namespace shardcall
