// SPDX-License-Identifier: Apache-2.0
// What a rank can see of the others' processes without their help: whether they
// live, are stopped, and their flight logs, read from their memory. Only ranks
// of the same host can be seen, where the system lets them.
#ifndef SHARDCALL_COLLECTIVES_MPI_MPI_PEERS_H_
#define SHARDCALL_COLLECTIVES_MPI_MPI_PEERS_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "shardcall/collectives/flight_recorder.h"

namespace shardcall {

class MpiPeers {
 public:
  // What each rank tells the others at the start.
  struct Identity {
    uint64_t host = 0;  // equal for processes that see each other's ids
    int64_t process = 0;
    uint64_t log = 0;  // address of its FlightLog
  };
  static Identity Mine(const FlightLog* log);

  void Set(absl::Span<const Identity> by_rank, int me);

  enum class State { kUnknown, kRuns, kStopped, kEnded };
  State StateOf(int rank) const;
  // False where it cannot be read.
  bool ReadLog(int rank, FlightLog* log) const;

 private:
  bool Visible(int rank) const;

  int me_ = 0;
  std::vector<Identity> peers_;
};

}  // namespace shardcall

#endif  // SHARDCALL_COLLECTIVES_MPI_MPI_PEERS_H_
