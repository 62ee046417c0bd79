// SPDX-License-Identifier: Apache-2.0
// The uses of a PJRT plugin: the engine of run and verify, and the verb compile.
#include <cstdio>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "shardcall/partitioner/api/device_memory.h"
#include "shardcall/partitioner/bindings/pjrt/pjrt_engine.h"
#include "shardcall/partitioner/bindings/pjrt/pjrt_topology.h"
#include "shardcall/partitioner/tools/command.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace {

pjrt::CreateOptions CreateOptions(const Flags& flags) {
  pjrt::CreateOptions options;
  for (const std::string& option : flags.All("pjrt-option")) {
    const std::pair<std::string, std::string> parts =
        absl::StrSplit(option, absl::MaxSplits('=', 1));
    options.emplace_back(parts.first, pjrt::OptionValue(parts.second));
  }
  return options;
}

absl::Status NoPluginNamed(absl::string_view what) {
  Diagnostic d;
  d.code = "E338";
  d.message = absl::StrCat(what, " works on a PJRT plugin, and none is named");
  d.fix = "name it: --pjrt-plugin=FILE, such as xla_cpu_pjrt.so of the wheel xla-cpu-pjrt";
  return ToStatus(d);
}

// The output of compile: bytes on one device.
std::string MemoryJson(const pjrt::CompiledAhead& compiled, const DeviceMemory& ours,
                       int64_t devices) {
  const pjrt::MemoryUse& m = compiled.memory;
  return absl::StrCat(
      "{\n  \"num_partitions\": ", devices, ",\n  \"platform\": \"", compiled.platform,
      "\",\n  \"serialized_bytes\": ", compiled.serialized.size(),
      ",\n  \"memory\": {\"arguments\": ", m.arguments, ", \"outputs\": ", m.outputs,
      ", \"aliased\": ", m.aliased, ", \"temporaries\": ", m.temporaries, ", \"code\": ", m.code,
      ", \"peak\": ", m.peak, "},\n  \"unfused\": {\"arguments\": ", ours.arguments,
      ", \"outputs\": ", ours.outputs, ", \"temporaries\": ", ours.temporaries, "}\n}\n");
}

absl::Status Compile(const Flags& flags, Session& session) {
  if (!flags.Has("pjrt-plugin")) return NoPluginNamed("compile");
  SHARDCALL_ASSIGN_OR_RETURN(Module module, LoadProgram(flags, session));
  SHARDCALL_ASSIGN_OR_RETURN(const std::unique_ptr<PartitionedProgram> program,
                             Partition(std::move(module), session.options));
  for (const std::string& w : program->local.warnings) std::fprintf(stderr, "%s\n", w.c_str());
  pjrt::TopologyOptions topology;
  topology.shape = flags.Get("topology");
  topology.more = CreateOptions(flags);
  if (flags.Has("target-config")) {
    SHARDCALL_ASSIGN_OR_RETURN(topology.target_config,
                               ReadInput(flags.Get("target-config"), kMaxInput));
  }
  SHARDCALL_ASSIGN_OR_RETURN(const std::shared_ptr<const pjrt::Plugin> plugin,
                             pjrt::Plugin::Open(flags.Get("pjrt-plugin")));
  const int64_t devices = program->global->program.num_partitions;
  SHARDCALL_ASSIGN_OR_RETURN(const pjrt::CompiledAhead compiled,
                             pjrt::CompileAhead(*plugin, topology, program->local.module,
                                                static_cast<int>(devices), &session.handlers));
  if (flags.Has("o")) SHARDCALL_RETURN_IF_ERROR(WriteOutput(flags.Get("o"), compiled.serialized));
  const XlaBackend backend = compiled.platform == "cpu" ? XlaBackend::kCpu : XlaBackend::kGpu;
  return WriteOutput(
      "", MemoryJson(compiled, CountDeviceMemory(program->local.module, backend), devices));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Engine>> OpenPjrtEngine(const Flags& flags) {
  if (!flags.Has("pjrt-plugin")) {
    return NoPluginNamed("--backend=pjrt");
  }
  return MakePjrtEngine(flags.Get("pjrt-plugin"), CreateOptions(flags));
}

int RunCompile(const Flags& flags) {
  if (absl::Status s = OneInput(flags); !s.ok()) return FailUsage(s);
  if (flags.Get("o") == "-") {
    return FailUsage(absl::InvalidArgumentError("what is compiled is written to a file: -o FILE"));
  }
  absl::StatusOr<std::unique_ptr<Session>> session = MakeSession(flags);
  if (!session.ok()) return Fail(session.status());
  const absl::Status status = Compile(flags, **session);
  return status.ok() ? kExitOk : Fail(status);
}

}  // namespace internal
}  // namespace shardcall
