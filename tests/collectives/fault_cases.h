// SPDX-License-Identifier: Apache-2.0
// What every backend must do when one rank fails, as bodies that run on each
// rank at once: rank 1 does what the case is about, every other rank must get a
// typed error within twice the deadline, and keeps getting one.
#ifndef SHARDCALL_TESTS_COLLECTIVES_FAULT_CASES_H_
#define SHARDCALL_TESTS_COLLECTIVES_FAULT_CASES_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "shardcall/collectives/communicator.h"

namespace shardcall::testing {

// How a device of this backend ends, and how it stops for good. Both may return,
// what they return is then the rank's status.
struct FaultHooks {
  std::function<absl::Status()> kill;
  std::function<absl::Status()> stop;
  absl::Duration deadline;
};

struct FaultCase {
  std::string name;
  // Rank 1's part after a first barrier over all.
  absl::Status (*guilty)(Communicator& c, const FaultHooks& hooks);
  // The others' part; what has not failed by then meets in barriers.
  absl::Status (*others)(Communicator& c, const FaultHooks& hooks);
  std::vector<std::string> codes;  // one of them; empty: nothing must fail
  std::string text;                // stands in each message
  bool guilty_too = false;         // gets an error as well
  bool pairs_only = false;         // only ranks 0 to 2 meet it, and pairs alone fail
};

const std::vector<FaultCase>& FaultCases();
// "Terminated": SIGTERM, as a launcher sends it when it takes a job down, while ranks
// wait. Of backends whose ranks are processes.
FaultCase LauncherEndsTheJob();

struct FaultResult {
  absl::Status status;   // the first error
  absl::Duration after;  // since the first barrier
  absl::Status later;    // of a barrier afterwards
};
// Runs this rank's part.
FaultResult RunFault(const FaultCase& fault, Communicator& c, const FaultHooks& hooks);
// What is wrong with the result; empty if nothing.
std::string Judge(const FaultCase& fault, const FaultResult& result, int rank,
                  absl::Duration deadline);

}  // namespace shardcall::testing

#endif  // SHARDCALL_TESTS_COLLECTIVES_FAULT_CASES_H_
