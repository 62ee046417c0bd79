// SPDX-License-Identifier: Apache-2.0
// The public header of the MPI backend: one device per process, host memory.
//
// All traffic is non-blocking messages between pairs of ranks, polled until the deadline, so that
// an absent rank can be named. A failure is final for the process: a time-out, a disagreement or
// an abort is sent to every rank that can be reached, and MPI is not called again.
//
// Members that disagree detect it while they wait, within about 50 ms. A member that waits for
// none of those that disagree (for example in a broadcast) may have returned by then; its next
// call reports the failure.
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
  // Members compare their calls before any data is moved, at the cost of a message per partner.
  // The default is whether SHARDCALL_CHECK_COLLECTIVES=1 is set.
  bool check_every_call = CheckCollectivesByDefault();
  static bool CheckCollectivesByDefault();
  // Deadline for all ranks to start and connect; then E301. Zero: `deadline`, but at least 30 s,
  // since launchers may be slow.
  absl::Duration start_deadline;
  // How long a process that ends waits until the other ranks end, too. Then it says E301 on
  // standard error and ends with status 1 and without MPI_Finalize, so that the launcher ends the
  // job. Zero: for ever, as MPI does.
  absl::Duration end_deadline;
};

// Whether an MPI launcher started this process, according to the environment.
bool LaunchedByMpi();

// Set by the code that runs a program over MPI to the name of the current instruction; null: none.
// If the launcher ends a rank while it computes, the rank prints this name (E304).
std::atomic<const std::string*>& ComputingOverMpi();

// The communicator of this process. Every rank calls it. The first call initialises MPI unless the
// process has done so, and MPI is finalised when the process ends; ranks die with their launcher.
// One thread at a time may use the result, except for Abort, and only one communicator at a time
// may be used. E302 where shardcall was built without MPI; E307 where MPI itself fails.
absl::StatusOr<std::unique_ptr<Communicator>> ConnectMpi(absl::Duration deadline,
                                                         const MpiOptions& options = {});

}  // namespace shardcall

#endif  // SHARDCALL_COLLECTIVES_MPI_MPI_H_
