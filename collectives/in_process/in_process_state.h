// SPDX-License-Identifier: Apache-2.0
// Shared by the devices of an InProcessWorld: the groups and pairs, made on first use, and the
// record of who has left or aborted. Lists of ranks are checked and stored once, not once for each
// device that passes them, so that memory is linear in the devices.
#ifndef SHARDCALL_COLLECTIVES_IN_PROCESS_IN_PROCESS_STATE_H_
#define SHARDCALL_COLLECTIVES_IN_PROCESS_IN_PROCESS_STATE_H_

#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/hash/hash.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "shardcall/collectives/flight_recorder.h"
#include "shardcall/collectives/in_process/in_process_group.h"
#include "shardcall/collectives/in_process/in_process_pair.h"

namespace shardcall {
inline namespace internal {

// For tables by lists that are owned elsewhere; of the standard library, since Abseil's cannot be
// destroyed once they found no memory to grow. The hash reads a few elements only: each device
// looks up its list at every call, and the comparison reads the whole list once already.
template <typename T>
struct HashOfList {
  size_t operator()(absl::Span<const T> list) const {
    constexpr size_t kSamples = 16;
    size_t hash = absl::HashOf(list.size());
    const size_t step = list.size() / kSamples + 1;
    for (size_t i = 0; i < list.size(); i += step) hash = absl::HashOf(hash, list[i]);
    return list.empty() ? hash : absl::HashOf(hash, list.back());
  }
};
template <typename T>
struct SameList {
  bool operator()(absl::Span<const T> a, absl::Span<const T> b) const {
    return a.size() == b.size() &&
           (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
  }
};
template <typename T, typename V>
using ByList = std::unordered_map<absl::Span<const T>, V, HashOfList<T>, SameList<T>>;

class InProcessState {
 public:
  // A group, and one order of its members.
  struct Meeting {
    InProcessGroup* group = nullptr;
    const InProcessGroup::Order* order = nullptr;
  };
  // The pairs of a permute, and each rank's partners; -1 for none.
  struct Permutation {
    using Pair = std::pair<int, int>;
    std::vector<Pair> pairs;
    std::vector<int> source_of, target_of;
  };

  InProcessState(int size, absl::Duration deadline);

  int size() const { return static_cast<int>(recorders_.size()); }
  absl::Duration deadline() const { return deadline_; }
  FlightRecorder& recorder(int rank) { return recorders_[rank]; }

  // The results live as long as the state; groups and pairs have failed already if a member has
  // left or the world was aborted. E306 for ranks that are no group with `rank`, or pairs that are
  // no permute.
  absl::StatusOr<Meeting> FindGroup(absl::Span<const int> ranks, int rank);
  absl::StatusOr<const Permutation*> FindPermutation(absl::Span<const Permutation::Pair> pairs);
  InProcessPair* FindPair(int sender, int receiver);

  void Join(int rank);
  void Leave(int rank);
  void Abort(const absl::Status& reason);
  absl::Status aborted() const;

 private:
  Meeting MakeMeeting(absl::Span<const int> ranks);
  // The one of the ranks that left first, or -1.
  int FirstLeft(absl::Span<const int> ranks) const;
  absl::Status LeftStatus(int rank) const;

  const absl::Duration deadline_;
  std::vector<FlightRecorder> recorders_;

  mutable std::mutex mutex_;
  std::vector<bool> joined_;
  std::vector<int> left_;  // by rank: 1 for the first that left, 0 for those that are there
  int num_left_ = 0;
  absl::Status aborted_;
  std::map<std::vector<int>, std::unique_ptr<InProcessGroup>> groups_;  // by sorted ranks
  ByList<int, Meeting> meetings_;                                       // by ranks in order
  ByList<Permutation::Pair, std::unique_ptr<const Permutation>> permutations_;
  std::map<std::pair<int, int>, std::unique_ptr<InProcessPair>> pairs_;
  // By rank, those that fail when it leaves.
  std::vector<std::vector<InProcessGroup*>> groups_of_;
  std::vector<std::vector<InProcessPair*>> pairs_of_;
};

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_COLLECTIVES_IN_PROCESS_IN_PROCESS_STATE_H_
