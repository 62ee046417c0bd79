// SPDX-License-Identifier: Apache-2.0
// One fault on rank 1 of a job over the stand-in for NCCL, by name:
//   mpirun -np N nccl_fault CASE DEADLINE_SECONDS DIR
// As mpi_fault, for run_mpi_faults.py. A rank whose data do not move first waits for
// the deadline and then asks the others over MPI, which has the same one: so errors
// come within twice the deadline, and are judged by three times.
#include <nccl.h>
#include <signal.h>

#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <string>
#include <vector>

#include "shardcall/collectives/mpi/mpi.h"
#include "shardcall/collectives/nccl/nccl.h"
#include "shardcall/sharding/base/status.h"
#include "tests/collectives/fault_cases.h"
#include "tests/collectives/fault_log.h"
#include "tests/collectives/stand_in/stand_in.h"

namespace shardcall::testing {
namespace {

absl::Status AllReduceOf1000(Communicator& c) {
  std::vector<int> all(c.size());
  std::iota(all.begin(), all.end(), 0);
  std::vector<float> data(1000);
  return c.AllReduce(all, ReduceKind::kSum, ElementType::kF32, data.data(), data.data(), 1000,
                     {"%ar.2"});
}

std::vector<FaultCase> Cases() {
  std::vector<FaultCase> cases = FaultCases();
  for (FaultCase& fault : cases) {
    if (fault.name == "Late") {
      // It finds its part of the others' call done, and is in the next one.
      fault.codes = {"E301", "E305"};
      fault.text = "rank 1 ";
    }
    if (fault.name == "CallsAnotherRoot" || fault.name == "SendsOtherBlocks" ||
        fault.name == "PermutesAnotherSize") {
      // What differs is not among what ranks compare at the deadline, or no group meets.
      fault.codes = {"E301"};
      fault.text = " has waited ";
    }
  }
  cases.push_back(LauncherEndsTheJob());
  cases.push_back({"AsynchronousError",
                   [](Communicator& c, const FaultHooks&) {
                     stand_in::FailNextOperation(ncclSystemError);
                     return AllReduceOf1000(c);
                   },
                   [](Communicator& c, const FaultHooks&) { return AllReduceOf1000(c); },
                   {"E309"},
                   "NCCL failed in ",
                   true});
  return cases;
}

// Nothing of CUDA's or NCCL's is left, whatever became of the calls.
std::string JudgeEnd(std::string complaint) {
  const std::string unfreed = stand_in::Unfreed();
  if (complaint.empty() && !unfreed.empty()) return absl::StrCat("left: ", unfreed);
  return complaint;
}

int Run(const std::string& name, absl::Duration deadline, const Log& log) {
  FaultHooks hooks;
  hooks.deadline = deadline;
  hooks.kill = [] {
    raise(SIGKILL);
    return absl::OkStatus();
  };
  hooks.stop = [] {
    raise(SIGSTOP);
    return absl::OkStatus();
  };
  for (const FaultCase& fault : Cases()) {
    if (fault.name != name) continue;
    absl::Status status;
    FaultResult result;
    std::string complaint;
    int size = SizeOfLauncher();
    {
      // Ranks start at times further apart than the deadline.
      auto mpi = ConnectMpi(absl::Seconds(30));
      std::unique_ptr<Communicator> nccl;
      if (mpi.ok()) {
        std::vector<int> all(size);
        std::iota(all.begin(), all.end(), 0);
        status = (*mpi)->Barrier(all, {"%start"});
        mpi = ConnectMpi(deadline);
      }
      status.Update(mpi.status());
      if (status.ok()) {
        NcclOptions options;
        options.over = mpi->get();
        auto connected = ConnectNccl(deadline, options);
        status = connected.status();
        if (status.ok()) nccl = *std::move(connected);
      }
      if (!status.ok()) {
        log.Write(status, absl::ZeroDuration(), "cannot connect");
        return 1;
      }
      result = RunFault(fault, *nccl, hooks);
      complaint = Judge(fault, result, log.rank, 1.5 * deadline);
      // Of what a rank says by itself the others hear at once.
      const bool told = name == "AsynchronousError" || name == "Aborts";
      if (complaint.empty() && told && result.after > 0.7 * deadline) {
        complaint = "waited for the deadline";
      }
    }
    log.Write(result.status, result.after, JudgeEnd(complaint));
    log.AwaitOthers(size, 3 * deadline);
    return result.status.ok() ? 0 : 1;
  }
  std::fprintf(stderr, "there is no fault \"%s\"\n", name.c_str());
  return 2;
}

}  // namespace
}  // namespace shardcall::testing

int main(int argc, char** argv) {
  using namespace shardcall::testing;  // NOLINT
  if (argc == 2 && std::string(argv[1]) == "--list") {
    for (const FaultCase& fault : Cases()) std::printf("%s\n", fault.name.c_str());
    return 0;
  }
  if (argc != 4) return 2;
  return Run(argv[1], absl::Seconds(std::atof(argv[2])), Log{argv[3], RankOfLauncher()});
}
