// SPDX-License-Identifier: Apache-2.0
// The entry of the MPI backend: one device per process, host memory.
//
// All traffic is non-blocking messages between pairs of ranks, polled against
// the deadline, so that an absent rank is known by name. A failure is final for
// the process: a time-out, a disagreement or an abort is told to every rank that
// can be reached, and MPI is not called again.
//
// Members that disagree find it out while they wait, within about 50 ms. One
// that waits for nobody who disagrees (of a broadcast, say) may be through by
// then; it learns of the failure in its next call.
#ifndef SHARDCALL_COLLECTIVES_MPI_MPI_H_
#define SHARDCALL_COLLECTIVES_MPI_MPI_H_

#include <atomic>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "shardcall/collectives/communicator.h"
#include "shardcall/sharding/base/public.h"

namespace shardcall SHARDCALL_PUBLIC {

struct MpiOptions {
  // Members compare what they call before any data move, each time: costs a
  // message per partner. By default if SHARDCALL_CHECK_COLLECTIVES=1 is set.
  bool check_every_call = CheckCollectivesByDefault();
  static bool CheckCollectivesByDefault();
  // For all ranks to start and connect; E301 past it. Zero: the deadline, but at
  // least 30 s, since a launcher takes its time.
  absl::Duration start_deadline;
};

// Whether this process was started by an MPI launcher, from its environment.
bool LaunchedByMpi();

// Where whoever runs a program over MPI says which instruction this rank is at; null: none.
// A rank that the launcher ends while it waits for nobody says this name (E304).
std::atomic<const std::string*>& ComputingOverMpi();

// The communicator of this process. Every rank calls it. The first call
// initialises MPI unless the process has done so, and has MPI finalised at the
// end of the process; ranks die with their launcher. One thread at a time may
// use the result, but for Abort, and one communicator at a time may be used.
// E302 where shardcall was built without MPI; E307 where MPI itself fails.
absl::StatusOr<std::unique_ptr<Communicator>> ConnectMpi(absl::Duration deadline,
                                                         const MpiOptions& options = {});

}  // namespace shardcall

#endif  // SHARDCALL_COLLECTIVES_MPI_MPI_H_
