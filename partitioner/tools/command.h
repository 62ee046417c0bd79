// SPDX-License-Identifier: Apache-2.0
// The `shardcall` command-line tool: its verbs are thin wrappers of library functions.
#ifndef SHARDCALL_PARTITIONER_TOOLS_COMMAND_H_
#define SHARDCALL_PARTITIONER_TOOLS_COMMAND_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "shardcall/kernels/ffi/handler.h"
#include "shardcall/partitioner/api/engine.h"
#include "shardcall/partitioner/api/partition.h"
#include "shardcall/partitioner/custom_call/derive/lowering.h"
#include "shardcall/partitioner/ir/proto/hlo_proto.h"
#include "shardcall/partitioner/ir/text/printer.h"
#include "shardcall/partitioner/pass/overlap.h"
#include "shardcall/partitioner/tools/flags.h"
#include "shardcall/sharding/base/max_input.h"

namespace shardcall {
inline namespace internal {

// Exit codes of the command.
inline constexpr int kExitOk = 0;
inline constexpr int kExitInput = 1;  // an error in the program or its inputs
inline constexpr int kExitUsage = 2;
inline constexpr int kExitMismatch = 3;     // outputs differ, or a contract is broken
inline constexpr int kExitEnvironment = 4;  // no GPU, no MPI launcher

struct Verb {
  absl::string_view name;
  absl::string_view synopsis;
  absl::string_view help;
  absl::string_view example;
  std::vector<FlagSpec> flags;
  int (*run)(const Flags& flags);
};
const std::vector<Verb>& Verbs();

// The exit code for a failure.
int ExitCode(const absl::Status& status);
// Prints the diagnostic to stderr; returns its exit code.
int Fail(const absl::Status& status);
int FailUsage(const absl::Status& status);

// Checks and input shared by the verbs.
absl::Status OneInput(const Flags& flags);  // checks that there is one input
// "-": stdin. E060, and E064 beyond `max_input`.
absl::StatusOr<std::string> ReadInput(const std::string& path, int64_t max_input);
// "-" or "": stdout. Files are written atomically.
absl::Status WriteOutput(const std::string& path, absl::string_view text);
// Text; HloProto if the name ends in .hlo.pb; else if in .pb, the form of the
// input.
absl::Status WriteModule(const std::string& path, const Module& module, ProtoForm input,
                         const PrintOptions& text = {});
struct Session {
  std::string converter;          // a PJRT plugin; empty: search for one
  int64_t max_input = kMaxInput;  // of a program or manifest, in bytes
  TargetRegistry targets;
  HandlerRegistry handlers;
  LoweringRegistry lowerings;
  PartitionOptions options;
  OverlapOptions schedule;
};
// Reads text or a binary form (by the suffix `.pb` or by content), or StableHLO through the
// session's converter, and verifies it. `parse_us` gets the parse time. Custom calls without a
// shape get the one that the session's targets infer.
absl::StatusOr<Module> LoadModule(const std::string& path, const Session& session,
                                  double* parse_us = nullptr);
// The input of `flags`, with the mesh sizes of --remesh and the session's
// lowerings for Host.
absl::StatusOr<Module> LoadProgram(const Flags& flags, const Session& session,
                                   double* parse_us = nullptr);
// Built-in targets, plugins, and the options shared by partition, run, verify and explain. On the
// heap, since the options point into it.
absl::StatusOr<std::unique_ptr<Session>> MakeSession(const Flags& flags);
// The value of the flag `name`, or 60 seconds; E331.
absl::StatusOr<absl::Duration> SecondsOf(const Flags& flags, const std::string& name);
// For another device, or for a kernel: of --wait, else of --deadline.
absl::StatusOr<absl::Duration> LongestWait(const Flags& flags);
const std::vector<FlagSpec>& PartitionFlags();
std::vector<FlagSpec> Joined(std::vector<FlagSpec> a, const std::vector<FlagSpec>& b);

int RunPrint(const Flags& flags);
int RunPropagate(const Flags& flags);
int RunPartition(const Flags& flags);
int RunRun(const Flags& flags);
int RunVerify(const Flags& flags);
int RunCheckRule(const Flags& flags);
int RunExplain(const Flags& flags);
int RunReshard(const Flags& flags);
int RunTargets(const Flags& flags);
int RunCompile(const Flags& flags);

// The engine of --backend=pjrt; E338 if no plugin is given; E333, E334.
absl::StatusOr<std::unique_ptr<Engine>> OpenPjrtEngine(const Flags& flags);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_TOOLS_COMMAND_H_
