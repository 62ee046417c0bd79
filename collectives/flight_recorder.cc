// SPDX-License-Identifier: Apache-2.0
#include "shardcall/collectives/flight_recorder.h"

#include <algorithm>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace shardcall {
inline namespace internal {

static_assert(std::is_trivially_copyable_v<FlightLog>);

int64_t FlightRecorder::Begin(const CallSignature& signature, absl::Span<const int> ranks,
                              absl::string_view name) {
  std::lock_guard<std::mutex> lock(mutex_);
  const int64_t number = log_.number_ + 1;
  FlightLog::Entry& entry = log_.entries_[number % FlightLog::kEntries];
  entry.state = FlightLog::State::kWaiting;
  entry.signature = signature;
  entry.number = number;
  entry.begun = std::chrono::steady_clock::now();
  entry.num_ranks = static_cast<int>(ranks.size());
  std::copy_n(ranks.begin(), std::min<size_t>(ranks.size(), FlightLog::kShownRanks),
              entry.ranks.begin());
  const size_t length = std::min(name.size(), entry.name.size() - 1);
  std::copy_n(name.begin(), length, entry.name.begin());
  entry.name[length] = '\0';
  log_.number_ = number;
  return number;
}

void FlightRecorder::End(bool ok) {
  std::lock_guard<std::mutex> lock(mutex_);
  log_.entries_[log_.number_ % FlightLog::kEntries].state =
      ok ? FlightLog::State::kDone : FlightLog::State::kFailed;
}

void FlightRecorder::Leave() {
  std::lock_guard<std::mutex> lock(mutex_);
  log_.left_ = true;
}

int64_t FlightRecorder::last_number() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return log_.number_;
}

std::string FlightRecorder::Summary() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return log_.Summary();
}

std::string FlightRecorder::History(absl::string_view prefix) const {
  std::lock_guard<std::mutex> lock(mutex_);
  return log_.History(prefix);
}

bool FlightLog::IsLog() const {
  if (magic_ != kMagic || number_ < 0) return false;
  return std::all_of(entries_.begin(), entries_.end(), [](const Entry& entry) {
    return entry.state <= State::kFailed && entry.signature.op <= CollectiveOp::kLast &&
           entry.signature.kind <= ReduceKind::kXor && entry.num_ranks >= 0 &&
           std::find(entry.name.begin(), entry.name.end(), '\0') != entry.name.end();
  });
}

std::string FlightLog::EntryText(const Entry& entry) {
  return absl::StrCat(SignatureText(entry.signature), " #", entry.number,
                      TagText(entry.name.data()));
}

std::string FlightLog::RanksOf(const Entry& entry) {
  return absl::StrCat(
      RankListText(
          absl::MakeConstSpan(entry.ranks).first(std::min<size_t>(entry.num_ranks, kShownRanks))),
      entry.num_ranks > kShownRanks ? ",..." : "");
}

std::string FlightLog::Summary() const {
  if (number_ == 0) return left_ ? "left without a call" : "has called no collective yet";
  const Entry& last = At(number_);
  if (last.state == State::kWaiting) {
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - last.begun).count();
    return absl::StrCat(absl::StrFormat("has waited %.3g s in ", seconds), EntryText(last),
                        " over ", RanksOf(last));
  }
  return absl::StrCat(last.state == State::kDone ? "last completed " : "last failed in ",
                      EntryText(last), left_ ? " and has left" : " and is in no collective");
}

std::string FlightLog::History(absl::string_view prefix) const {
  std::string text;
  for (int64_t n = std::max<int64_t>(1, number_ - kEntries + 1); n <= number_; ++n) {
    const Entry& entry = At(n);
    constexpr absl::string_view kStates[] = {"", "waiting", "done", "failed"};
    absl::StrAppend(&text, text.empty() ? "" : "\n", prefix, "#", entry.number, " ",
                    SignatureText(entry.signature), TagText(entry.name.data()), " over ",
                    RanksOf(entry), ": ", kStates[static_cast<int>(entry.state)]);
  }
  return text;
}

}  // namespace internal
}  // namespace shardcall
