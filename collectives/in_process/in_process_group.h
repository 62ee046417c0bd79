// SPDX-License-Identifier: Apache-2.0
// Synchronises the threads of one group. One call at a time is open. The member that arrives last
// checks that all agree and opens the work, which all threads that are awake execute. Buffers are
// accessed only from then until the work is done, and meanwhile no member returns. A member can
// give up waiting only before that, and this fails the call for all.
//
// Failures are final: later calls on the group return the same status.
#ifndef SHARDCALL_COLLECTIVES_IN_PROCESS_IN_PROCESS_GROUP_H_
#define SHARDCALL_COLLECTIVES_IN_PROCESS_IN_PROCESS_GROUP_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "shardcall/collectives/call.h"
#include "shardcall/collectives/flight_recorder.h"
#include "shardcall/collectives/in_process/in_process_work.h"
#include "shardcall/collectives/wait_word.h"

namespace shardcall {
inline namespace internal {

class InProcessGroup {
 public:
  // One order of the members, interned per group.
  struct Order {
    std::vector<int> ranks;
    std::vector<int> slots;  // position in the order -> index of the member
  };

  // `recorders` is indexed by rank and outlives the group.
  InProcessGroup(std::vector<int> sorted_ranks, absl::Span<FlightRecorder> recorders);

  const std::vector<int>& ranks() const { return ranks_; }
  bool Holds(int rank) const { return IndexOf(rank) >= 0; }
  int IndexOf(int rank) const;  // of the member; -1 if `rank` is none
  const Order* InternOrder(absl::Span<const int> ranks);

  // The call of member `index`. Blocks until all members have called and the
  // work is done, or the group has failed.
  absl::Status Run(int index, const Order* order, const CallSignature& signature,
                   const MemberBuffers& buffers, absl::string_view name, int64_t number,
                   absl::Duration patience);

  // Ends an open call, and all later ones, with `status`; work in progress is finished first.
  void Fail(const absl::Status& status);

 private:
  enum : uint32_t { kGathering, kRunning, kDone, kDead };
  struct Slot {
    bool here = false;
    const Order* order = nullptr;
    CallSignature signature;
    MemberBuffers buffers;
    absl::string_view name;
  };
  // A range of the items. A thread begins with the range of the core it runs on, so that a core
  // accesses the same memory in every call, then helps with the others.
  static constexpr int kSegments = 8;
  struct alignas(64) Segment {
    std::atomic<int64_t> next{0};
    int64_t end = 0;
  };
  struct Call {
    WaitWord state{kGathering};
    size_t arrived = 0;
    std::vector<Slot> slots;
    InProcessWork work;
    std::array<Segment, kSegments> segments;
    std::atomic<int64_t> items_done{0};
  };

  absl::Status CheckAgreement(const Call& call) const;
  void FailLocked(const absl::Status& status);
  absl::Status Late(const Call& call, const CallSignature& signature, absl::string_view name,
                    int64_t number, absl::Duration patience) const;
  void Open(Call& call) const;
  void Help(Call& call) const;

  const std::vector<int> ranks_;
  const absl::Span<FlightRecorder> recorders_;
  const int yields_;  // times to yield before a wait sleeps

  std::mutex mutex_;
  std::vector<std::unique_ptr<Order>> orders_;
  absl::Status failure_;
  // Two records suffice: call k+1 can complete only after all members have entered it, and so have
  // left k-1.
  uint64_t round_ = 0;
  std::array<Call, 2> calls_;
};

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_COLLECTIVES_IN_PROCESS_IN_PROCESS_GROUP_H_
