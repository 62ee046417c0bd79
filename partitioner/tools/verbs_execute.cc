// SPDX-License-Identifier: Apache-2.0
// The verbs that execute: run, verify and check-rule.
#include <chrono>
#include <cstdio>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "shardcall/collectives/call.h"
#include "shardcall/collectives/mpi/mpi.h"
#include "shardcall/collectives/nccl/nccl.h"
#include "shardcall/partitioner/api/verify.h"
#include "shardcall/partitioner/check/check_target.h"
#include "shardcall/partitioner/runtime/execute/watched_threads.h"
#include "shardcall/partitioner/runtime/io/npz.h"
#include "shardcall/partitioner/runtime/io/random_inputs.h"
#include "shardcall/partitioner/runtime/out_of_memory.h"
#include "shardcall/partitioner/tools/command.h"
#include "shardcall/partitioner/tools/result_output.h"
#include "shardcall/sharding/base/status.h"
#include "shardcall/sharding/base/stop.h"

namespace shardcall {
inline namespace internal {
namespace {

struct Execution {
  Execution() = default;
  Execution(Execution&&) = default;
  // A handler that did not return may still use the communicators.
  ~Execution() {
    if (ThreadsLeftBehind() == 0) return;
    (void)communicator.release();
    (void)bootstrap.release();
  }
  RunOptions options;
  std::unique_ptr<Communicator> bootstrap;     // for NCCL: connects the ranks
  std::unique_ptr<Communicator> communicator;  // null if devices are threads
  std::unique_ptr<Engine> engine;              // PJRT's; null for others
  bool first_rank = true;                      // prints and writes
};

absl::StatusOr<Execution> MakeExecution(const Flags& flags, const Session& session) {
  Execution e;
  e.options.partition = session.options;
  e.options.handlers = &session.handlers;
  e.options.overlap = !flags.Has("no-overlap");
  e.options.own_shards_only = flags.Has("own-shards-only");
  e.options.schedule = session.schedule;
  SHARDCALL_ASSIGN_OR_RETURN(e.options.backend, BackendFromName(flags.Get("backend", "inprocess")));
  SHARDCALL_ASSIGN_OR_RETURN(e.options.deadline, LongestWait(flags));
  MpiOptions mpi;
  if (flags.Has("deadline") || flags.Has("wait")) mpi.start_deadline = e.options.deadline;
  if (flags.Has("deadline")) {
    SHARDCALL_ASSIGN_OR_RETURN(mpi.end_deadline, SecondsOf(flags, "deadline"));
  }
  if (e.options.backend == Backend::kMpi) {
    if (!LaunchedByMpi()) {
      Diagnostic d;
      d.code = "E332";
      d.message = "--backend=mpi runs under an MPI launcher";
      d.fix = "start it with mpirun -np N shardcall run ... --backend=mpi";
      return ToStatus(d, absl::StatusCode::kUnavailable);
    }
    SHARDCALL_ASSIGN_OR_RETURN(e.communicator, ConnectMpi(e.options.deadline, mpi));
    e.first_rank = e.communicator->rank() == 0;
  } else if (e.options.backend == Backend::kNccl) {
    SHARDCALL_RETURN_IF_ERROR(CheckNcclDevice());
    NcclOptions nccl;
    if (LaunchedByMpi()) {
      SHARDCALL_ASSIGN_OR_RETURN(e.bootstrap, ConnectMpi(e.options.deadline, mpi));
      nccl.over = e.bootstrap.get();
    }
    SHARDCALL_ASSIGN_OR_RETURN(e.communicator, ConnectNccl(e.options.deadline, nccl));
    e.first_rank = e.communicator->rank() == 0;
  } else if (e.options.backend == Backend::kPjrt) {
    SHARDCALL_ASSIGN_OR_RETURN(e.engine, OpenPjrtEngine(flags));
    e.options.engine = e.engine.get();
  }
  return e;
}

// Failures before the run are the same on every rank, or reach the first rank as the reason of an
// abort. So only the first rank prints them, and its exit ends the job; other ranks print only if
// that does not happen. Failures of the run differ by rank, so each rank prints its own.
enum class Phase { kBefore, kRun };
// On a machine that is busy, the first rank's exit ends the job only after seconds.
constexpr absl::Duration kUntilFirstRankEnds = absl::Seconds(10);
int FailRank(const Execution& e, const absl::Status& status, Phase phase) {
  if (e.communicator == nullptr) return Fail(status);
  if (phase == Phase::kBefore && e.first_rank) {
    const int code = Fail(status);
    e.communicator->Abort(status);
    return code;
  }
  e.communicator->Abort(status);
  if (phase == Phase::kBefore) {
    Communicator& launched = e.bootstrap != nullptr ? *e.bootstrap : *e.communicator;
    const absl::Time end = absl::Now() + kUntilFirstRankEnds;
    while (absl::Now() < end) {
      if (launched.FindDeparted({}).job_ends)
        return ExitCode(status);  // the first rank has said it
      absl::SleepFor(absl::Milliseconds(20));
    }
  }
  std::fprintf(stderr, "rank %d: ", e.communicator->rank());
  return Fail(status);
}

// A disagreement of the ranks is found before any computes, and all get the same text.
Phase PhaseOf(const absl::Status& of_run) {
  return DiagnosticCode(of_run) == "E308" ? Phase::kBefore : Phase::kRun;
}

// Compares the number of devices from the launcher with that of the program.
absl::Status CheckWorld(const Execution& e, int64_t devices) {
  if (e.communicator == nullptr || e.communicator->size() == devices) return absl::OkStatus();
  Diagnostic d;
  d.code = "E051";
  d.message = "the number of ranks is not the number of devices";
  d.expected = absl::StrCat(devices, " ranks");
  d.found = absl::StrCat(e.communicator->size());
  d.fix = absl::StrCat("start it with mpirun -np ", devices);
  return ToStatus(d);
}

// Only the first rank writes outputs: E308 where only some ranks are told to. Collective.
absl::Status CheckWhoWrites(const Execution& e, const Flags& flags) {
  if (e.communicator == nullptr) return absl::OkStatus();
  const char mine = flags.Has("outputs") ? 1 : 0;
  const std::vector<int> ranks = EveryRank(*e.communicator);
  std::vector<char> all(ranks.size());
  SHARDCALL_RETURN_IF_ERROR(
      e.communicator->AllGather(ranks, &mine, all.data(), 1, {"check of --outputs"}));
  std::vector<int> told, untold;
  for (const int rank : ranks) (all[rank] != 0 ? told : untold).push_back(rank);
  if (told.empty() || untold.empty()) return absl::OkStatus();
  Diagnostic d;
  d.code = "E308";
  d.message = absl::StrCat("--outputs is given on ", RanksText(told), " and not on ",
                           RanksText(untold), ", and rank 0 writes for all");
  d.fix = "Give every rank the same --outputs";
  return ToStatus(d, absl::StatusCode::kFailedPrecondition);
}

// The program of `flags`, with values for elided constants if requested.
absl::StatusOr<Module> LoadToRun(const Flags& flags, const Session& session) {
  SHARDCALL_ASSIGN_OR_RETURN(Module module, LoadProgram(flags, session));
  if (flags.Has("random-constants")) {
    SHARDCALL_ASSIGN_OR_RETURN(const int64_t seed, flags.Int("random-constants", 0));
    SHARDCALL_RETURN_IF_ERROR(WithinMemory("the constants", [&] {
      FillElidedConstants(&module, static_cast<uint64_t>(seed));
      return absl::OkStatus();
    }));
  }
  return module;
}

absl::StatusOr<std::vector<Tensor>> Inputs(const Flags& flags, const Session& session,
                                           absl::Span<const LeafShape> leaves) {
  return WithinMemory("the inputs", [&]() -> absl::StatusOr<std::vector<Tensor>> {
    if (flags.Has("inputs")) return ReadNpz(flags.Get("inputs"), "arg", leaves, session.max_input);
    SHARDCALL_ASSIGN_OR_RETURN(const int64_t seed, flags.Int("random-inputs", 0));
    return RandomInputs(leaves, static_cast<uint64_t>(seed));
  });
}

double SecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

int Run(const Flags& flags, Session& session) {
  absl::StatusOr<Execution> e = MakeExecution(flags, session);
  if (!e.ok()) return Fail(e.status());
  auto fail = [&](const absl::Status& s) { return FailRank(*e, s, Phase::kBefore); };
  if (absl::Status s = CheckWhoWrites(*e, flags); !s.ok()) return fail(s);
  absl::StatusOr<Module> module = LoadToRun(flags, session);
  if (!module.ok()) return fail(module.status());
  const std::vector<LeafShape> leaves = ParameterLeaves(*module);
  const bool partitions = session.options.num_partitions != 1;
  // Inputs may be large, so a program that cannot be partitioned is refused before they are there.
  std::unique_ptr<PartitionedProgram> program;
  int64_t devices = 1;
  const auto start = std::chrono::steady_clock::now();
  if (partitions) {
    absl::StatusOr<std::unique_ptr<PartitionedProgram>> partitioned =
        Partition(*std::move(module), e->options.partition);
    if (!partitioned.ok()) return fail(partitioned.status());
    program = *std::move(partitioned);
    devices = program->global->program.num_partitions;
    if (absl::Status s = CheckWorld(*e, devices); !s.ok()) return fail(s);
  }
  const double partitioning = SecondsSince(start);
  absl::StatusOr<std::vector<Tensor>> inputs = Inputs(flags, session, leaves);
  if (!inputs.ok()) return fail(inputs.status());
  const auto run_start = std::chrono::steady_clock::now();
  absl::StatusOr<std::vector<Tensor>> outputs =
      partitions
          ? RunPartitioned(*program, *inputs, e->options, e->communicator.get())
          : EvaluateWithin(*module, *std::move(inputs), &session.handlers, e->options.deadline);
  if (!outputs.ok()) return FailRank(*e, outputs.status(), PhaseOf(outputs.status()));
  const double seconds = partitioning + SecondsSince(run_start);
  if (!e->first_rank) return kExitOk;
  if (flags.Has("outputs")) {
    const absl::Status s = WriteNpz(flags.Get("outputs"), "out", *outputs);
    if (!s.ok()) return fail(s);
  }
  std::fprintf(
      stderr, "ran on %d device%s (%s): %d outputs, %.3f s\n", static_cast<int>(devices),
      devices == 1 ? "" : "s",
      session.options.num_partitions == 1 ? "evaluator" : flags.Get("backend", "inprocess").c_str(),
      static_cast<int>(outputs->size()), seconds);
  return kExitOk;
}

int DoVerify(const Flags& flags, Session& session) {
  ResultOutput output;
  absl::StatusOr<Execution> e = MakeExecution(flags, session);
  if (!e.ok()) return Fail(e.status());
  auto fail = [&](const absl::Status& s) { return FailRank(*e, s, Phase::kBefore); };
  absl::StatusOr<int64_t> seed = flags.Int("seed", 0);
  if (!seed.ok()) return FailUsage(seed.status());
  absl::StatusOr<Module> module = LoadToRun(flags, session);
  if (!module.ok()) return fail(module.status());
  std::vector<Tensor> given;
  if (flags.Has("inputs")) {
    absl::StatusOr<std::vector<Tensor>> inputs = Inputs(flags, session, ParameterLeaves(*module));
    if (!inputs.ok()) return fail(inputs.status());
    given = *std::move(inputs);
  }
  if (e->communicator != nullptr && session.options.num_partitions > 0) {
    if (absl::Status s = CheckWorld(*e, session.options.num_partitions); !s.ok()) return fail(s);
  }
  absl::StatusOr<VerifyResult> result =
      Verify(*std::move(module), e->options, static_cast<uint64_t>(*seed), std::move(given),
             e->communicator.get());
  if (!result.ok()) return FailRank(*e, result.status(), PhaseOf(result.status()));
  if (e->first_rank) output.Print(VerifyJson(*result));
  switch (result->status) {
    case VerifyResult::Status::kOk: return kExitOk;
    case VerifyResult::Status::kMismatch: return kExitMismatch;
    case VerifyResult::Status::kUnsupported: break;
  }
  return kExitInput;
}

int DoCheckRule(const Flags& flags, Session& session) {
  ResultOutput output;
  const auto check = [&]() -> absl::StatusOr<RuleCheck> {
    TargetCheck what;
    what.target = flags.Get("target");
    what.vjp = flags.Has("vjp");
    SHARDCALL_ASSIGN_OR_RETURN(const int64_t seed, flags.Int("seed", 0));
    what.seed = static_cast<uint64_t>(seed);
    if (flags.Has("deadline")) {
      SHARDCALL_ASSIGN_OR_RETURN(what.deadline, SecondsOf(flags, "deadline"));
    }
    if (flags.positional().empty()) return CheckTarget(what, session.targets, session.handlers);
    SHARDCALL_ASSIGN_OR_RETURN(const Module module, LoadModule(flags.positional()[0], session));
    what.program = &module;
    if (flags.Has("inputs")) {
      SHARDCALL_ASSIGN_OR_RETURN(what.inputs, Inputs(flags, session, ParameterLeaves(module)));
    }
    return CheckTarget(what, session.targets, session.handlers);
  }();
  if (!check.ok()) return Fail(check.status());
  output.Print(RuleCheckJson(*check));
  return check->verdict == RuleVerdict::kHolds ? kExitOk : kExitMismatch;
}

int WithSession(const Flags& flags, int (*run)(const Flags&, Session&)) {
  if (absl::Status s = OneInput(flags); !s.ok()) return FailUsage(s);
  if (flags.Has("inputs") && flags.Has("random-inputs")) {
    return FailUsage(absl::InvalidArgumentError("give --inputs or --random-inputs, not both"));
  }
  if (auto backend = BackendFromName(flags.Get("backend", "inprocess")); !backend.ok()) {
    return FailUsage(backend.status());
  }
  // Without the flag a program may compute for as long as it needs.
  StopOptions stop;
  if (flags.Has("deadline")) {
    const absl::StatusOr<absl::Duration> limit = SecondsOf(flags, "deadline");
    if (!limit.ok()) return Fail(limit.status());
    stop.limit = *limit;
  }
  absl::StatusOr<std::unique_ptr<Session>> session = MakeSession(flags);
  if (!session.ok()) return Fail(session.status());
  std::optional<StopScope> scope;
  if (flags.Has("deadline")) scope.emplace(std::move(stop));
  return run(flags, **session);
}

}  // namespace

int RunRun(const Flags& flags) { return WithSession(flags, Run); }
int RunVerify(const Flags& flags) { return WithSession(flags, DoVerify); }

int RunCheckRule(const Flags& flags) {
  const bool inputs_alone = flags.Has("inputs") && flags.positional().empty();
  if (flags.Get("target").empty() || flags.positional().size() > 1 || inputs_alone) {
    return FailUsage(
        absl::InvalidArgumentError(inputs_alone ? "--inputs are of a program with one call"
                                   : flags.positional().size() > 1 ? "expected at most one program"
                                                                   : "--target is missing"));
  }
  absl::StatusOr<std::unique_ptr<Session>> session = MakeSession(flags);
  return session.ok() ? DoCheckRule(flags, **session) : Fail(session.status());
}

}  // namespace internal
}  // namespace shardcall
