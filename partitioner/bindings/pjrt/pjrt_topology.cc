// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/bindings/pjrt/pjrt_topology.h"

#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/bindings/pjrt/program_source.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace pjrt {
namespace {

using abi::Function;
using abi::Padded;

// The devices that programs are compiled for.
class Topology {
 public:
  explicit Topology(const Plugin& plugin) : plugin_(plugin) {}
  ~Topology() {
    if (topology_ == nullptr) return;
    Padded<abi::TopologyArgs> args;
    args.value.topology = topology_;
    plugin_.Call(Function::kTopologyDestroy, &args).IgnoreError();
  }

  absl::Status Open(const TopologyOptions& options) {
    CreateOptions create = options.more;
    if (!options.shape.empty()) create.emplace_back("topology", options.shape);
    if (!options.target_config.empty()) {
      create.emplace_back("target_config", options.target_config);
    }
    const std::vector<abi::NamedValue> values = NamedValues(create);
    Padded<abi::TopologyCreateArgs> args;
    args.value.name = options.shape.data();
    args.value.name_size = options.shape.size();
    args.value.options = values.data();
    args.value.num_options = values.size();
    SHARDCALL_RETURN_IF_ERROR(plugin_.Call(Function::kTopologyCreate, &args));
    topology_ = args.value.topology;
    Padded<abi::TopologyTextArgs> name;
    name.value.topology = topology_;
    SHARDCALL_RETURN_IF_ERROR(plugin_.Call(Function::kTopologyPlatformName, &name));
    platform_.assign(name.value.text, name.value.size);
    Padded<abi::TopologyDevicesArgs> devices;
    devices.value.topology = topology_;
    SHARDCALL_RETURN_IF_ERROR(plugin_.Call(Function::kTopologyDevices, &devices));
    for (size_t d = 0; d < devices.value.num_descriptions; ++d) {
      Padded<abi::DescriptionIdArgs> id;
      id.value.description = devices.value.descriptions[d];
      SHARDCALL_RETURN_IF_ERROR(plugin_.Call(Function::kDeviceDescriptionId, &id));
      ids_.push_back(id.value.id);
    }
    return absl::OkStatus();
  }

  const abi::Topology* handle() const { return topology_; }
  const std::string& platform() const { return platform_; }
  absl::Span<const int64_t> ids() const { return ids_; }

 private:
  const Plugin& plugin_;
  abi::Topology* topology_ = nullptr;
  std::string platform_;
  std::vector<int64_t> ids_;
};

absl::StatusOr<std::string> Serialize(const Plugin& plugin, const abi::Executable* executable) {
  Padded<abi::SerializeArgs> args;
  args.value.executable = executable;
  SHARDCALL_RETURN_IF_ERROR(plugin.Call(Function::kExecutableSerialize, &args));
  std::string bytes(args.value.bytes, args.value.size);
  if (args.value.deleter != nullptr) args.value.deleter(args.value.serialized);
  return bytes;
}

}  // namespace

absl::StatusOr<abi::Executable*> CompileOn(const Plugin& plugin, const abi::Topology* topology,
                                           const Padded<abi::Program>& program,
                                           const std::string& options) {
  Padded<abi::CompileAheadArgs> args;
  args.value.topology = topology;
  args.value.program = &program.value;
  args.value.options = options.data();
  args.value.options_size = options.size();
  SHARDCALL_RETURN_IF_ERROR(plugin.Call(Function::kCompile, &args));
  return args.value.executable;
}

absl::StatusOr<CompiledAhead> CompileAhead(const Plugin& plugin, const TopologyOptions& options,
                                           const Module& local, int num_devices,
                                           const HandlerRegistry* handlers) {
  Topology topology(plugin);
  SHARDCALL_RETURN_IF_ERROR(topology.Open(options));
  CompiledAhead out;
  out.platform = topology.platform();
  out.num_devices = static_cast<int>(topology.ids().size());
  if (out.num_devices < num_devices) {
    return ToStatus({.code = "E335",
                     .message = absl::StrCat("topology ", options.shape, " of the PJRT plugin \"",
                                             plugin.name(), "\" has too few devices"),
                     .expected = absl::StrCat(num_devices, " or more"),
                     .found = absl::StrCat(out.num_devices, " of platform ", out.platform),
                     .fix = "Give a larger topology, or compile for fewer devices"});
  }
  SHARDCALL_ASSIGN_OR_RETURN(
      const ProgramSource source,
      MakeProgramSource(plugin, out.platform, topology.ids().subspan(0, num_devices), local,
                        handlers));
  SHARDCALL_ASSIGN_OR_RETURN(
      abi::Executable* const executable,
      CompileOn(plugin, topology.handle(), ProgramOf(kHloFormat, source.code), source.options));
  const absl::Cleanup destroy = [&] { plugin.Destroy(executable); };
  Padded<abi::MemoryArgs> memory;
  memory.value.executable = executable;
  SHARDCALL_RETURN_IF_ERROR(plugin.Call(Function::kExecutableMemory, &memory));
  out.memory = {.code = memory.value.code,
                .arguments = memory.value.arguments,
                .outputs = memory.value.outputs,
                .temporaries = memory.value.temporaries,
                .aliased = memory.value.aliased,
                .peak = memory.value.peak};
  SHARDCALL_ASSIGN_OR_RETURN(out.serialized, Serialize(plugin, executable));
  return out;
}

}  // namespace pjrt
}  // namespace internal
}  // namespace shardcall
