// SPDX-License-Identifier: Apache-2.0
// Reading, writing, options and exit codes that the verbs share.
#include <cstdio>
#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "shardcall/partitioner/api/lower_calls.h"
#include "shardcall/partitioner/bindings/c/plugin.h"
#include "shardcall/partitioner/bindings/xla/inspect_sharding.h"
#include "shardcall/partitioner/bindings/xla/registration.h"
#include "shardcall/partitioner/import/remesh.h"
#include "shardcall/partitioner/spmd/plan/state_search.h"
#include "shardcall/partitioner/tools/command.h"
#include "shardcall/sharding/base/status.h"
#include "shardcall/sharding/base/terminal_text.h"
#include "shardcall/sharding/base/whole_file.h"
#include "shardcall/sharding/cost_model.h"

namespace shardcall {
inline namespace internal {

int ExitCode(const absl::Status& status) {
  return absl::IsUnavailable(status) ? kExitEnvironment : kExitInput;
}

int Fail(const absl::Status& status) {
  std::fprintf(stderr, "%s\n", WithoutControls(status.message()).c_str());
  return ExitCode(status);
}

int FailUsage(const absl::Status& status) {
  std::fprintf(stderr, "shardcall: %s\n", WithoutControls(status.message()).c_str());
  return kExitUsage;
}

absl::Status OneInput(const Flags& flags) {
  if (flags.positional().size() == 1) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("expected one input file, found ", flags.positional().size(), "; see --help"));
}

absl::StatusOr<std::string> ReadInput(const std::string& path, int64_t max_input) {
  return path == "-" ? ReadWholeStream(stdin, "<stdin>", max_input)
                     : ReadWholeFile(path, max_input);
}

absl::Status WriteOutput(const std::string& path, absl::string_view text) {
  if (path.empty() || path == "-") {
    const bool ok =
        std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
    return ok ? absl::OkStatus() : FileError("E061", "standard output", "written");
  }
  return WriteWholeFile(path, text);
}

absl::StatusOr<Module> LoadProgram(const Flags& flags, const Session& session, double* parse_us) {
  SHARDCALL_ASSIGN_OR_RETURN(Module module, LoadModule(flags.positional()[0], session, parse_us));
  SHARDCALL_ASSIGN_OR_RETURN(module, LowerCalls(std::move(module), session.lowerings, "Host"));
  if (!flags.Has("remesh")) return module;
  std::vector<AxisSize> sizes;
  for (absl::string_view entry : absl::StrSplit(flags.Get("remesh"), ',')) {
    const std::pair<std::string, std::string> parts =
        absl::StrSplit(entry, absl::MaxSplits('=', 1));
    AxisSize size{parts.first, 0};
    if (size.axis.empty() || !absl::SimpleAtoi(parts.second, &size.size)) {
      Diagnostic d;
      d.code = "E053";
      d.message = "--remesh cannot be read";
      d.expected = "AXIS=SIZE,...";
      d.found = flags.Get("remesh");
      d.fix = "name a mesh axis and its new size, as in --remesh=data=2";
      return ToStatus(d);
    }
    sizes.push_back(std::move(size));
  }
  SHARDCALL_RETURN_IF_ERROR(Remesh(sizes, &module));
  return module;
}

absl::StatusOr<absl::Duration> SecondsOf(const Flags& flags, const std::string& name) {
  SHARDCALL_ASSIGN_OR_RETURN(const double seconds, flags.Double(name, 60));
  if (seconds > 0) return absl::Seconds(seconds);
  Diagnostic d;
  d.code = "E331";
  d.message = absl::StrCat("the ", name, " is no time to wait");
  d.expected = absl::StrCat("--", name, "=SECONDS with SECONDS > 0");
  d.found = flags.Get(name);
  d.fix = "leave it out for what --help says";
  return ToStatus(d);
}

absl::StatusOr<absl::Duration> LongestWait(const Flags& flags) {
  return SecondsOf(flags, flags.Has("wait") ? "wait" : "deadline");
}

absl::StatusOr<std::unique_ptr<Session>> MakeSession(const Flags& flags) {
  auto session = std::make_unique<Session>();
  session->converter = flags.Get("converter");
  SHARDCALL_ASSIGN_OR_RETURN(session->max_input, flags.Bytes("max-input", kMaxInput));
  SHARDCALL_RETURN_IF_ERROR(
      RegisterBuiltins(session->targets, session->handlers, session->lowerings));
  SHARDCALL_RETURN_IF_ERROR(RegisterInspectSharding(session->targets));
  SHARDCALL_RETURN_IF_ERROR(session->lowerings.Register(
      "", "Host", LowerToHandlers(&session->handlers, &session->targets), "built in"));
  absl::Duration deadline = kLoadDeadline;
  if (flags.Has("deadline") || flags.Has("wait")) {
    SHARDCALL_ASSIGN_OR_RETURN(deadline, LongestWait(flags));
  }
  for (const std::string& path : flags.All("plugin")) {
    SHARDCALL_RETURN_IF_ERROR(LoadPlugin(path, &session->targets, &session->handlers,
                                         &session->lowerings, deadline, session->max_input));
  }
  PartitionOptions& o = session->options;
  o.targets = &session->targets;
  SHARDCALL_ASSIGN_OR_RETURN(o.num_partitions, flags.Int("num-partitions", 0));
  if (flags.Has("num-partitions") && o.num_partitions < 1) {
    Diagnostic d;
    d.code = "E051";
    d.message = "a program cannot run on fewer than one device";
    d.expected = "--num-partitions=N with N >= 1";
    d.found = flags.Get("num-partitions");
    d.fix = "give the number of devices of the mesh";
    return ToStatus(d);
  }
  o.propagate = !flags.Has("no-propagate");
  o.spmd.strict_partial = flags.Has("strict-partial");
  for (const std::string& list : flags.All("allow-replicate")) {
    for (absl::string_view t : absl::StrSplit(list, ',', absl::SkipEmpty())) {
      o.allow_replicate.emplace_back(t);
    }
  }
  SHARDCALL_ASSIGN_OR_RETURN(o.spmd.max_reshard_bytes,
                             flags.Int("max-reshard-bytes", o.spmd.max_reshard_bytes));
  SHARDCALL_ASSIGN_OR_RETURN(o.spmd.max_memory, flags.Bytes("max-memory", o.spmd.max_memory));
  SHARDCALL_ASSIGN_OR_RETURN(o.spmd.cost, ParseCostModel(flags.Get("cost"), o.spmd.cost));
  SHARDCALL_ASSIGN_OR_RETURN(o.conflicts, ParseConflictOrder(flags.Get("conflicts", "cheapest")));
  SHARDCALL_ASSIGN_OR_RETURN(o.spmd.search, ParseStateSearch(flags.Get("search", "small")));
  // The host's model, unless the flags describe another machine.
  SHARDCALL_ASSIGN_OR_RETURN(session->schedule.cost,
                             ParseCostModel(flags.Get("cost"), session->schedule.cost));
  return session;
}

}  // namespace internal
}  // namespace shardcall
