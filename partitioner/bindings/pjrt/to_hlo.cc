// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/bindings/pjrt/to_hlo.h"

#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/bindings/pjrt/compile_options.h"
#include "shardcall/partitioner/bindings/pjrt/dump_folder.h"
#include "shardcall/partitioner/bindings/pjrt/pjrt_topology.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace pjrt {
namespace {

using abi::Function;
using abi::Padded;

// The partition count for a program without options: with several partitions XLA:CPU stops with an
// error before compilation, but after conversion.
constexpr int64_t kSomePartitions = 2;

// The description of some GPU, XLA's of the H100: XLA:GPU's plugin makes no topology without one.
// Nothing is compiled for it here.
constexpr char kSomeGpu[] = R"(
gpu_device_info { threads_per_block_limit: 1024 threads_per_warp: 32
  shared_memory_per_block: 49152 shared_memory_per_core: 233472 threads_per_core_limit: 2048
  core_count: 132 fpus_per_core: 128 block_dim_limit_x: 2147483647 block_dim_limit_y: 65535
  block_dim_limit_z: 65535 memory_bandwidth: 3352320000000 l2_cache_size: 52428800
  clock_rate_ghz: 1.98 device_memory_size: 84978434048 shared_memory_per_block_optin: 232448
  registers_per_core_limit: 65536 registers_per_block_limit: 65536
  cuda_compute_capability { major: 9 } }
platform_name: "CUDA" dnn_version_info { major: 9 } device_description_str: "sm_90")";

bool IsGpuPlatform(absl::string_view platform) {
  for (absl::string_view gpu : {"cuda", "rocm", "sycl", "gpu"}) {
    if (absl::EqualsIgnoreCase(platform, gpu)) return true;
  }
  return false;
}

absl::Status NoModule(const Plugin& plugin) {
  return ToStatus({.code = "E340",
                   .message = absl::StrCat("the PJRT plugin \"", plugin.name(),
                                           "\" took the program and gave no HLO module"),
                   .fix = "Convert it with XLA:CPU's plugin, of the wheel xla-cpu-pjrt"},
                  absl::StatusCode::kUnimplemented);
}

// The bytes of the program of an executable.
absl::StatusOr<std::string> OptimizedProgram(const Plugin& plugin, abi::Executable* executable) {
  Padded<abi::Program> program;
  Padded<abi::OptimizedProgramArgs> args;
  args.value.executable = executable;
  args.value.program = &program.value;
  SHARDCALL_RETURN_IF_ERROR(plugin.Call(Function::kExecutableOptimizedProgram, &args));
  std::string bytes(program.value.code_size, '\0');
  program.value.code = bytes.data();
  SHARDCALL_RETURN_IF_ERROR(plugin.Call(Function::kExecutableOptimizedProgram, &args));
  return bytes;
}

}  // namespace

absl::StatusOr<std::unique_ptr<const Converter>> Converter::Open(const std::string& path) {
  SHARDCALL_ASSIGN_OR_RETURN(std::shared_ptr<const Plugin> plugin, Plugin::Open(path));
  std::unique_ptr<Converter> converter(new Converter(std::move(plugin)));
  // XLA:GPU makes no client without a GPU, but a topology is enough to convert; XLA:CPU makes no
  // topology, but a client.
  const CreateOptions some = {{"topology", std::string("1x1x1")},
                              {"target_config", std::string(kSomeGpu)}};
  const std::vector<abi::NamedValue> values = NamedValues(some);
  Padded<abi::TopologyCreateArgs> args;
  args.value.options = values.data();
  args.value.num_options = values.size();
  if (converter->plugin_->Call(Function::kTopologyCreate, &args).ok()) {
    converter->owned_topology_ = args.value.topology;
    converter->topology_ = args.value.topology;
    converter->platform_ = "gpu";
    return std::unique_ptr<const Converter>(std::move(converter));
  }
  SHARDCALL_ASSIGN_OR_RETURN(
      converter->owned_client_,
      Client::Create(converter->owned_plugin_, static_cast<int>(kSomePartitions)));
  converter->client_ = converter->owned_client_->handle();
  converter->platform_ = converter->owned_client_->platform();
  return std::unique_ptr<const Converter>(std::move(converter));
}

Converter::~Converter() {
  if (owned_topology_ == nullptr) return;
  Padded<abi::TopologyArgs> args;
  args.value.topology = owned_topology_;
  plugin_->Call(Function::kTopologyDestroy, &args).IgnoreError();
}

absl::StatusOr<std::string> Converter::ToHlo(absl::string_view program) const {
  // Every module that uses the dialect contains its name, as text and as bytecode.
  SHARDCALL_ASSIGN_OR_RETURN(
      const std::string module,
      ToHlo(program, PlainOptions(kSomePartitions, absl::StrContains(program, "sdy"))));
  return WithoutDevices(module);
}

absl::StatusOr<std::string> Converter::ToHlo(absl::string_view program,
                                             absl::string_view options) const {
  return IsGpuPlatform(platform_) ? ByEarlyExit(program, options) : ByDump(program, options);
}

absl::StatusOr<std::string> Converter::ByDump(absl::string_view program,
                                              absl::string_view options) const {
  SHARDCALL_ASSIGN_OR_RETURN(const DumpFolder folder, DumpFolder::Create());
  SHARDCALL_ASSIGN_OR_RETURN(const std::string dumping, DumpingOptions(options, folder.path()));
  const Padded<abi::Program> given = ProgramOf(kMlirFormat, program);
  absl::Status compiled;
  if (client_ != nullptr) {
    Padded<abi::CompileArgs> args;
    args.value.client = client_;
    args.value.program = &given.value;
    args.value.options = dumping.data();
    args.value.options_size = dumping.size();
    compiled = plugin_->Call(Function::kClientCompile, &args);
    if (compiled.ok()) plugin_->Destroy(args.value.executable);
  } else {
    const absl::StatusOr<abi::Executable*> made = CompileOn(*plugin_, topology_, given, dumping);
    compiled = made.status();
    if (made.ok()) plugin_->Destroy(*made);
  }
  SHARDCALL_ASSIGN_OR_RETURN(const std::string dumped,
                             folder.ReadFile("before_optimizations.hlo.pb"));
  // A compilation error is expected; the dump is complete by then.
  if (!dumped.empty()) return HeldModule(dumped);
  return compiled.ok() ? NoModule(*plugin_) : compiled;
}

absl::StatusOr<std::string> Converter::ByEarlyExit(absl::string_view program,
                                                   absl::string_view options) const {
  SHARDCALL_ASSIGN_OR_RETURN(const std::string leaving, EarlyExitOptions(options));
  const abi::Topology* topology = topology_;
  if (topology == nullptr) {
    Padded<abi::ClientTopologyArgs> args;
    args.value.client = client_;
    SHARDCALL_RETURN_IF_ERROR(plugin_->Call(Function::kClientTopology, &args));
    topology = args.value.topology;
  }
  SHARDCALL_ASSIGN_OR_RETURN(
      abi::Executable* const executable,
      CompileOn(*plugin_, topology, ProgramOf(kMlirFormat, program), leaving));
  const absl::Cleanup destroy = [&] { plugin_->Destroy(executable); };
  SHARDCALL_ASSIGN_OR_RETURN(const std::string holder, OptimizedProgram(*plugin_, executable));
  SHARDCALL_ASSIGN_OR_RETURN(std::string module, HeldModule(holder));
  if (module.empty()) return NoModule(*plugin_);
  return module;
}

}  // namespace pjrt
}  // namespace internal
}  // namespace shardcall
