// SPDX-License-Identifier: Apache-2.0
// Ahead-of-time compilation by a PJRT plugin, for devices that need not exist.
#ifndef SHARDCALL_PARTITIONER_BINDINGS_PJRT_PJRT_TOPOLOGY_H_
#define SHARDCALL_PARTITIONER_BINDINGS_PJRT_PJRT_TOPOLOGY_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "shardcall/kernels/ffi/handler.h"
#include "shardcall/partitioner/bindings/pjrt/pjrt_client.h"
#include "shardcall/partitioner/ir/module.h"

namespace shardcall {
inline namespace internal {
namespace pjrt {

struct TopologyOptions {
  std::string shape;          // "1x1x8": slices x hosts x devices, in the plugin's form
  std::string target_config;  // the text of a GpuTargetConfigProto; empty: none
  CreateOptions more;         // other options of PJRT_TopologyDescription_Create
};

// Bytes on one device, as the plugin counts them.
struct MemoryUse {
  int64_t code = 0, arguments = 0, outputs = 0, temporaries = 0;
  int64_t aliased = 0;  // bytes of outputs in donated arguments
  int64_t peak = 0;     // 0 if the plugin does not report it
};

struct CompiledAhead {
  std::string platform;
  int num_devices = 0;  // of the topology
  MemoryUse memory;
  std::string serialized;  // can be loaded by the plugin
};

// Compiles the program for each of the first `num_devices` devices of the topology. See
// MakeProgramSource for handlers and for errors other than E334, the plugin's, and E335, a
// topology with fewer devices.
absl::StatusOr<CompiledAhead> CompileAhead(const Plugin& plugin, const TopologyOptions& topology,
                                           const Module& local, int num_devices,
                                           const HandlerRegistry* handlers);

// PJRT_Compile; the caller destroys the executable. E334.
absl::StatusOr<abi::Executable*> CompileOn(const Plugin& plugin, const abi::Topology* topology,
                                           const abi::Padded<abi::Program>& program,
                                           const std::string& options);

}  // namespace pjrt
}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_BINDINGS_PJRT_PJRT_TOPOLOGY_H_
