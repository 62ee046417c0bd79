// SPDX-License-Identifier: Apache-2.0
// The last calls of one rank, so that an error can report what each rank last did. Written by the
// rank, read by any thread. With MPI other processes of the host copy the log from the rank's
// memory.
#ifndef SHARDCALL_COLLECTIVES_FLIGHT_RECORDER_H_
#define SHARDCALL_COLLECTIVES_FLIGHT_RECORDER_H_

#include <array>
#include <cstdint>
#include <mutex>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "shardcall/collectives/call.h"
#include "shardcall/collectives/wait_word.h"

namespace shardcall {
inline namespace internal {

// Trivially copyable. A copy that was made during a write is safe to read if IsLog().
class FlightLog {
 public:
  static constexpr int kEntries = 8;

  bool IsLog() const;  // false if this memory holds something else
  // "last completed all-gather(64 bytes) #13 (%ag.1) and is in no collective".
  std::string Summary() const;
  // One line per kept call, oldest first, each after `prefix`: "#13 all-gather(64 bytes) (%ag.1)
  // over 0-3: done".
  std::string History(absl::string_view prefix) const;

 private:
  friend class FlightRecorder;
  static constexpr int kShownRanks = 8;
  static constexpr uint64_t kMagic = 0x73686172646c6f67;
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
  static std::string RanksOf(const Entry& entry);
  const Entry& At(int64_t number) const { return entries_[number % kEntries]; }

  uint64_t magic_ = kMagic;
  int64_t number_ = 0;
  bool left_ = false;
  std::array<Entry, kEntries> entries_;
};

class FlightRecorder {
 public:
  // Begins the record of a call and returns its number; the rank's first call is 1. `ranks` is the
  // group, or the partners; the first few are kept.
  int64_t Begin(const CallSignature& signature, absl::Span<const int> ranks,
                absl::string_view name);
  void End(bool ok);
  void Leave();

  int64_t last_number() const;
  std::string Summary() const;
  std::string History(absl::string_view prefix) const;
  // The log, for processes that copy it; valid as long as the recorder.
  const FlightLog* log() const { return &log_; }

 private:
  mutable std::mutex mutex_;
  FlightLog log_;
};

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_COLLECTIVES_FLIGHT_RECORDER_H_
