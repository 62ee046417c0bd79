// SPDX-License-Identifier: Apache-2.0
// What a rank can observe of the others' processes without their cooperation: whether they are
// alive or stopped, and their flight logs, read from their memory. Works only for ranks of the
// same host, where the system permits it.
#ifndef SHARDCALL_COLLECTIVES_MPI_MPI_PEERS_H_
#define SHARDCALL_COLLECTIVES_MPI_MPI_PEERS_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "shardcall/collectives/flight_recorder.h"

namespace shardcall {
inline namespace internal {

class MpiPeers {
 public:
  // Exchanged by all ranks at the start.
  struct Identity {
    uint64_t host = 0;  // equal for processes that see each other's process ids
    int64_t process = 0;
    uint64_t log = 0;  // address of its FlightLog
  };
  static Identity Mine(const FlightLog* log);

  void Set(absl::Span<const Identity> by_rank, int me);

  enum class State { kUnknown, kRuns, kStopped, kEnded };
  State StateOf(int rank) const;
  // False if it cannot be read.
  bool ReadLog(int rank, FlightLog* log) const;

 private:
  bool Visible(int rank) const;

  int me_ = 0;
  std::vector<Identity> peers_;
};

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_COLLECTIVES_MPI_MPI_PEERS_H_
