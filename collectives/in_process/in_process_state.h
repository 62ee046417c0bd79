// SPDX-License-Identifier: Apache-2.0
// Shared by the devices of an InProcessWorld: the groups and pairs, made on first use, and the
// record of who has left or aborted.
#ifndef SHARDCALL_COLLECTIVES_IN_PROCESS_IN_PROCESS_STATE_H_
#define SHARDCALL_COLLECTIVES_IN_PROCESS_IN_PROCESS_STATE_H_

#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "shardcall/collectives/flight_recorder.h"
#include "shardcall/collectives/in_process/in_process_group.h"
#include "shardcall/collectives/in_process/in_process_pair.h"

namespace shardcall::inline internal {

class InProcessState {
 public:
  InProcessState(int size, absl::Duration deadline);

  int size() const { return static_cast<int>(recorders_.size()); }
  absl::Duration deadline() const { return deadline_; }
  FlightRecorder& recorder(int rank) { return recorders_[rank]; }

  // The results live as long as the state; they have failed already if a member has left or the
  // world was aborted.
  InProcessGroup* FindGroup(absl::Span<const int> ranks);
  InProcessPair* FindPair(int sender, int receiver);

  void Join(int rank);
  void Leave(int rank);
  void Abort(const absl::Status& reason);
  absl::Status aborted() const;

 private:
  absl::Status LeftStatus(int rank) const;

  const absl::Duration deadline_;
  std::vector<FlightRecorder> recorders_;

  mutable std::mutex mutex_;
  std::vector<bool> joined_;
  std::vector<int> left_;
  absl::Status aborted_;
  std::map<std::vector<int>, std::unique_ptr<InProcessGroup>> groups_;  // by sorted ranks
  std::map<std::pair<int, int>, std::unique_ptr<InProcessPair>> pairs_;
};

}  // namespace shardcall::inline internal

#endif  // SHARDCALL_COLLECTIVES_IN_PROCESS_IN_PROCESS_STATE_H_
