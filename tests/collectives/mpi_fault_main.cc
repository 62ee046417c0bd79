// SPDX-License-Identifier: Apache-2.0
// One fault on rank 1 of an MPI job, by name:
//   mpirun -np N mpi_fault CASE DEADLINE_SECONDS DIR
// Each rank writes what it got to DIR/rank.R, the last line "pass" or
// "FAIL: why". For run_mpi_faults.py, which starts it and checks what is left.
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "shardcall/collectives/mpi/mpi.h"
#include "shardcall/sharding/base/status.h"
#include "tests/collectives/fault_cases.h"
#include "tests/collectives/fault_log.h"

namespace shardcall::testing {
namespace {

// Faults before there is a communicator: the others cannot connect, and say so.
int RunAtStart(const std::string& fault, absl::Duration deadline, const Log& log) {
  // The others are there, and about to connect.
  const auto started = [&](int rank) { return absl::StrCat(log.dir, "/started.", rank); };
  std::ofstream(started(log.rank)).put('\n');
  if (log.rank == 1) {
    for (int r = 0; r < SizeOfLauncher(); ++r) {
      while (access(started(r).c_str(), F_OK) != 0) absl::SleepFor(absl::Milliseconds(10));
    }
    absl::SleepFor(0.2 * deadline);
    if (fault == "StartKilled") raise(SIGKILL);
    if (fault == "StartStopped") raise(SIGSTOP);
    if (fault == "StartLate") absl::SleepFor(4 * deadline);
    return 0;  // StartLeaves
  }
  const absl::Time start = absl::Now();
  MpiOptions options;
  options.start_deadline = deadline;
  const absl::Status status = ConnectMpi(deadline, options).status();
  const absl::Duration after = absl::Now() - start;
  std::string complaint;
  // The launcher may end the job before the deadline.
  if (DiagnosticCode(status) != "E301" && DiagnosticCode(status) != "E304") {
    complaint = absl::StrCat("got ", status.message());
  }
  if (after > 2 * deadline) complaint = "got its error late";
  log.Write(status, after, complaint);
  log.AwaitOthers(SizeOfLauncher(), 2 * deadline);
  return 1;
}

// On a busy machine ranks start at times further apart than a deadline; so they meet with more
// patience first.
absl::Status Meet() {
  auto connected = ConnectMpi(absl::Seconds(30));
  absl::Status met = connected.status();
  for (int i = 0; i < 2 && met.ok(); ++i) {
    std::vector<int> all((*connected)->size());
    std::iota(all.begin(), all.end(), 0);
    met = (*connected)->Barrier(all, {"%start"});
  }
  return met;
}

// All have done their work, and rank 1 does not end. The others say so as they end.
int RunAtEnd(absl::Duration deadline, const Log& log) {
  absl::Status met = Meet();
  if (met.ok()) met = ConnectMpi(deadline, {.end_deadline = deadline}).status();
  log.Write(met, absl::ZeroDuration(), met.ok() ? "" : "cannot connect");
  if (met.ok() && log.rank == 1) raise(SIGSTOP);
  return met.ok() ? 0 : 1;
}

int Run(const std::string& name, absl::Duration deadline, const Log& log) {
  if (name == "EndStopped") return RunAtEnd(deadline, log);
  if (name.substr(0, 5) == "Start") return RunAtStart(name, deadline, log);
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
  std::vector<FaultCase> cases = FaultCases();
  cases.push_back(LauncherEndsTheJob());
  cases.push_back({"Leaves",
                   [](Communicator&, const FaultHooks&) -> absl::Status { std::exit(0); },
                   cases[0].others,
                   {"E301", "E304"},
                   "rank 1 "});
  cases.push_back({"ExitsAtOnce",
                   [](Communicator&, const FaultHooks&) -> absl::Status { _exit(0); },
                   cases[0].others,
                   {"E301", "E304"},
                   "rank 1 "});
  for (const FaultCase& fault : cases) {
    if (fault.name != name) continue;
    absl::Status met = Meet();
    auto connected = ConnectMpi(deadline);
    if (met.ok()) met = connected.status();
    if (!met.ok()) {
      log.Write(met, absl::ZeroDuration(), "cannot connect");
      return 1;
    }
    const FaultResult result = RunFault(fault, **connected, hooks);
    log.Write(result.status, result.after, Judge(fault, result, log.rank, deadline));
    log.AwaitOthers((*connected)->size(), 2 * deadline);
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
    for (const FaultCase& fault : FaultCases()) std::printf("%s\n", fault.name.c_str());
    for (const char* name : {"Terminated", "Leaves", "ExitsAtOnce", "StartKilled", "StartStopped",
                             "StartLate", "StartLeaves", "EndStopped"}) {
      std::printf("%s\n", name);
    }
    return 0;
  }
  if (argc != 4) return 2;
  return Run(argv[1], absl::Seconds(std::atof(argv[2])), Log{argv[3], RankOfLauncher()});
}
