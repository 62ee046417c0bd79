// SPDX-License-Identifier: Apache-2.0
#include "tests/collectives/fault_cases.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall::testing {
namespace {

std::vector<int> Everyone(const Communicator& c) {
  std::vector<int> all(c.size());
  std::iota(all.begin(), all.end(), 0);
  return all;
}

// Buffers die right after the call, so that a late reader shows under asan.
absl::Status Reduce(Communicator& c, int64_t count, ElementType type = ElementType::kF32,
                    ReduceKind kind = ReduceKind::kSum) {
  auto in = std::make_unique<double[]>(count);
  auto out = std::make_unique<double[]>(count);
  return c.AllReduce(Everyone(c), kind, type, in.get(), out.get(), count, {"%ar.2"});
}

absl::Status Long(Communicator& c, const FaultHooks&) { return Reduce(c, 100000); }
absl::Status Short(Communicator& c, const FaultHooks&) { return Reduce(c, 8); }

absl::Status Gather(Communicator& c, const FaultHooks&) {
  std::vector<char> in(400), out(400 * c.size());
  return c.AllGather(Everyone(c), in.data(), out.data(), 400, {"%ag.2"});
}

absl::Status BroadcastFrom(Communicator& c, int root) {
  std::vector<char> buffer(1000);
  return c.Broadcast(Everyone(c), root, buffer.data(), 1000, {"%cb.2"});
}

absl::Status Ragged(Communicator& c, int64_t send_bytes) {
  const int n = c.size();
  std::vector<char> in(64 * n), out(64 * n);
  std::vector<int64_t> offsets(n), send(n, send_bytes), receive(n, 8);
  for (int j = 0; j < n; ++j) offsets[j] = 64 * j;
  return c.AllToAllV(Everyone(c), in.data(), offsets, send, out.data(), offsets, receive,
                     {"%ra2a.2"});
}

absl::Status Ring(Communicator& c, int64_t bytes) {
  std::vector<std::pair<int, int>> pairs;
  for (int r = 0; r < c.size(); ++r) pairs.push_back({r, (r + 1) % c.size()});
  std::vector<char> in(bytes), out(bytes);
  return c.Permute(pairs, in.data(), out.data(), bytes, {"%cp.2"});
}

absl::Status TerminatedWhileItWaits(Communicator& c, const FaultHooks& hooks) {
  std::thread launcher([&] {
    absl::SleepFor(0.4 * hooks.deadline);
    kill(getpid(), SIGTERM);
  });
  absl::Status status = Long(c, hooks);
  launcher.join();
  return status;
}

}  // namespace

FaultCase LauncherEndsTheJob() {
  return {"Terminated",
          [](Communicator&, const FaultHooks& h) {
            absl::SleepFor(3 * h.deadline);
            return absl::OkStatus();
          },
          TerminatedWhileItWaits,
          {"E304"},
          "the launcher ends this job (SIGTERM)"};
}

const std::vector<FaultCase>& FaultCases() {
  using C = Communicator;
  using H = FaultHooks;
  static const std::vector<FaultCase> kCases = {
      {"Killed",
       [](C&, const H& hooks) { return hooks.kill(); },
       Long,
       {"E304", "E301"},
       "rank 1 "},
      {"KilledBeforeAShortCall",
       [](C&, const H& hooks) { return hooks.kill(); },
       Short,
       {"E304", "E301"},
       "rank 1 "},
      {"Stopped", [](C&, const H& hooks) { return hooks.stop(); }, Long, {"E301"}, "rank 1 "},
      {"SlowButInTime",
       [](C& c, const H& hooks) {
         absl::SleepFor(0.5 * hooks.deadline);
         return Long(c, hooks);
       },
       Long,
       {},
       ""},
      {"Late",
       [](C& c, const H& hooks) {
         absl::SleepFor(1.3 * hooks.deadline);
         return Long(c, hooks);
       },
       Long,
       {"E301"},
       "(%first) and is in no collective",
       true},
      {"Skips",
       [](C& c, const H&) { return c.Barrier(Everyone(c), {"%next"}); },
       Long,
       {"E305"},
       "rank 1 calls barrier (%next)",
       true},
      {"CallsAnotherOp",
       Gather,
       Long,
       {"E305"},
       "rank 1 calls all-gather(400 bytes) (%ag.2)",
       true},
      {"CallsAnotherSize",
       [](C& c, const H&) { return Reduce(c, 99999); },
       Long,
       {"E305"},
       "rank 1 calls all-reduce(sum, f32[99999])",
       true},
      {"CallsAnotherShortSize",
       [](C& c, const H&) { return Reduce(c, 7); },
       Short,
       {"E305"},
       "rank 1 calls all-reduce(sum, f32[7])",
       true},
      {"CallsAnotherType",
       [](C& c, const H&) { return Reduce(c, 8, ElementType::kS32); },
       Short,
       {"E305"},
       "rank 1 calls all-reduce(sum, s32[8])",
       true},
      {"CallsAnotherReduction",
       [](C& c, const H&) { return Reduce(c, 8, ElementType::kF32, ReduceKind::kMax); },
       Short,
       {"E305"},
       "rank 1 calls all-reduce(max, f32[8])",
       true},
      {"CallsAnotherRoot",
       [](C& c, const H&) { return BroadcastFrom(c, 1); },
       [](C& c, const H&) { return BroadcastFrom(c, 0); },
       {"E305"},
       "rank 1 calls collective-broadcast(1000 bytes from member 1)",
       true},
      {"SendsOtherBlocks",
       [](C& c, const H&) { return Ragged(c, 4); },
       [](C& c, const H&) { return Ragged(c, 8); },
       {"E305"},
       "4 bytes",
       true},
      {"PermutesAnotherSize",
       [](C& c, const H&) { return Ring(c, 2000); },
       [](C& c, const H&) { return Ring(c, 1000); },
       {"E305"},
       "rank 1 calls collective-permute(2000 bytes) (%cp.2)",
       true,
       true},
      {"Aborts",
       [](C& c, const H& hooks) {
         c.Abort(absl::InternalError("device 1 ran out of memory"));
         return Long(c, hooks);
       },
       Long,
       {"E304"},
       "device 1 ran out of memory",
       true},
      {"AbortsLater",
       [](C& c, const H& hooks) {
         absl::SleepFor(0.3 * hooks.deadline);
         c.Abort(absl::InternalError("device 1 ran out of memory"));
         return Short(c, hooks);
       },
       Short,
       {"E304"},
       "device 1 ran out of memory",
       true},
  };
  return kCases;
}

FaultResult RunFault(const FaultCase& fault, Communicator& c, const FaultHooks& hooks) {
  FaultResult result;
  const std::vector<int> all = Everyone(c);
  absl::Time start = absl::Now();
  // Where rank 1 is through and aborts, others may hear of it in here.
  result.status = c.Barrier(all, {"%first"});
  if (result.status.ok()) {
    start = absl::Now();
    result.status = c.rank() == 1 ? fault.guilty(c, hooks) : fault.others(c, hooks);
  }
  for (int i = 0; i < 2 && result.status.ok(); ++i) result.status = c.Barrier(all, {"%after"});
  result.after = absl::Now() - start;
  result.later = c.Barrier(all, {"%later"});
  return result;
}

std::string Judge(const FaultCase& fault, const FaultResult& result, int rank,
                  absl::Duration deadline) {
  const absl::Status& status = result.status;
  if (fault.codes.empty()) {
    return status.ok() && result.later.ok() ? "" : absl::StrCat("failed: ", status.message());
  }
  if (rank == 1 && !fault.guilty_too) return "";
  if (rank > 2 && fault.pairs_only) return "";
  if (status.ok()) return "got no error";
  if (std::find(fault.codes.begin(), fault.codes.end(), DiagnosticCode(status)) ==
      fault.codes.end()) {
    return absl::StrCat("expected ", absl::StrJoin(fault.codes, " or "), ", got ",
                        status.message());
  }
  if (status.message().find(fault.text) == absl::string_view::npos) {
    return absl::StrCat("expected \"", fault.text, "\" in: ", status.message());
  }
  if (result.after > 2 * deadline) {
    return absl::StrCat("got its error after ", absl::FormatDuration(result.after));
  }
  if (result.later.ok() && !fault.pairs_only) return "the failure was not final";
  return "";
}

}  // namespace shardcall::testing
