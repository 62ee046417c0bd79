// SPDX-License-Identifier: Apache-2.0
// The last calls of one rank, kept so that an error can say what each rank last
// did. Written by the rank, read by any thread.
#ifndef SHARDCALL_COLLECTIVES_FLIGHT_RECORDER_H_
#define SHARDCALL_COLLECTIVES_FLIGHT_RECORDER_H_

#include <array>
#include <cstdint>
#include <mutex>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "collectives/call.h"
#include "collectives/wait_word.h"

namespace shardcall {

class FlightRecorder {
 public:
  static constexpr int kEntries = 8;

  // Opens the record of a call; gives its number, 1 for the rank's first call.
  // `ranks` is the group, or the partners; the first few are kept.
  int64_t Begin(const CallSignature& signature, absl::Span<const int> ranks,
                absl::string_view name);
  void End(bool ok);
  void Leave();

  int64_t last_number() const;
  // "last completed all-gather(64 bytes) #13 (%ag.1) and is in no collective".
  std::string Summary() const;
  // One line per kept call, oldest first, each with `prefix` before it:
  // "#13 all-gather(64 bytes) (%ag.1) over 0-3: done".
  std::string History(absl::string_view prefix) const;

 private:
  static constexpr int kShownRanks = 8;
  enum class State : uint8_t { kUnused, kWaiting, kDone, kFailed };
  struct Entry {
    State state = State::kUnused;
    CallSignature signature;
    int64_t number = 0;
    MonotonicTime begun;
    int num_ranks = 0;
    std::array<int, kShownRanks> ranks;
    std::array<char, 48> name;
  };
  static std::string EntryText(const Entry& entry);
  const Entry& At(int64_t number) const { return entries_[number % kEntries]; }

  mutable std::mutex mutex_;
  int64_t number_ = 0;
  bool left_ = false;
  std::array<Entry, kEntries> entries_;
};

}  // namespace shardcall

#endif  // SHARDCALL_COLLECTIVES_FLIGHT_RECORDER_H_
