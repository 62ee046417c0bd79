// SPDX-License-Identifier: Apache-2.0
// Synchronises one sender and one receiver, for permutes and for send and recv. The one that comes
// second copies from the sender's buffer to the receiver's; both return only after that, or after
// the pair has failed. Failures are final.
#ifndef SHARDCALL_COLLECTIVES_IN_PROCESS_IN_PROCESS_PAIR_H_
#define SHARDCALL_COLLECTIVES_IN_PROCESS_IN_PROCESS_PAIR_H_

#include <array>
#include <cstdint>
#include <mutex>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "shardcall/collectives/call.h"
#include "shardcall/collectives/flight_recorder.h"
#include "shardcall/collectives/wait_word.h"

namespace shardcall {
inline namespace internal {

class InProcessPair {
 public:
  enum Side : int { kSender = 0, kReceiver = 1 };

  // `recorders` is indexed by rank and outlives the pair.
  InProcessPair(int sender, int receiver, absl::Span<FlightRecorder> recorders)
      : ranks_{sender, receiver}, recorders_(recorders) {}

  bool Holds(int rank) const { return ranks_[0] == rank || ranks_[1] == rank; }

  // Offers this side's buffer and, if the other side is there, copies. Each Post must be followed
  // by one Await or one Withdraw of that side, by the same thread; until that returns, `data` and
  // `name` must stay valid.
  void Post(Side side, const CallSignature& signature, void* data, absl::string_view name,
            int64_t number);
  absl::Status Await(Side side, absl::Duration patience, MonotonicTime deadline);
  // Takes an offer back because this rank's call has failed elsewhere.
  void Withdraw(Side side, const absl::Status& reason);

  // Ends a pending call, and all later ones; a copy in progress is finished first.
  void Fail(const absl::Status& status);

 private:
  enum : uint32_t { kIdle, kPosted, kCopying, kDone, kDead };
  struct Offer {
    WaitWord state{kIdle};
    CallSignature signature;
    void* data = nullptr;
    absl::string_view name;
    int64_t number = 0;
  };
  static Side Other(Side side) { return side == kSender ? kReceiver : kSender; }
  static bool Match(const CallSignature& send, const CallSignature& recv);
  void FailLocked(const absl::Status& status);

  const std::array<int, 2> ranks_;
  const absl::Span<FlightRecorder> recorders_;
  std::mutex mutex_;
  absl::Status failure_;
  std::array<Offer, 2> offers_;
};

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_COLLECTIVES_IN_PROCESS_IN_PROCESS_PAIR_H_
