// SPDX-License-Identifier: Apache-2.0
// Programs compiled by a PJRT plugin for devices that need not be there.
#ifndef SHARDCALL_PARTITIONER_BINDINGS_PJRT_PJRT_TOPOLOGY_H_
#define SHARDCALL_PARTITIONER_BINDINGS_PJRT_PJRT_TOPOLOGY_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "shardcall/kernels/ffi/handler.h"
#include "shardcall/partitioner/bindings/pjrt/pjrt_client.h"
#include "shardcall/partitioner/ir/module.h"

namespace shardcall::pjrt {

struct TopologyOptions {
  std::string shape;          // "1x1x8": slices x hosts x devices, as the plugin reads it
  std::string target_config;  // the text of a GpuTargetConfigProto; empty: none
  CreateOptions more;         // what else PJRT_TopologyDescription_Create is given
};

// Bytes of one device, by the plugin's count.
struct MemoryUse {
  int64_t code = 0, arguments = 0, outputs = 0, temporaries = 0;
  int64_t aliased = 0;  // of the outputs, in arguments that were donated
  int64_t peak = 0;     // 0 where the plugin does not say
};

struct CompiledAhead {
  std::string platform;
  int num_devices = 0;  // of the topology
  MemoryUse memory;
  std::string serialized;  // what the plugin loads again
};

// Compiles what each of the first `num_devices` devices of the topology is to run; see
// MakeProgramSource for handlers, and errors beside E334, what the plugin says, and
// E335, a topology with fewer devices.
absl::StatusOr<CompiledAhead> CompileAhead(const Plugin& plugin, const TopologyOptions& topology,
                                           const Module& local, int num_devices,
                                           const HandlerRegistry* handlers);

// PJRT_Compile; the caller destroys the executable. E334.
absl::StatusOr<abi::Executable*> CompileOn(const Plugin& plugin, const abi::Topology* topology,
                                           const abi::Padded<abi::Program>& program,
                                           const std::string& options);

}  // namespace shardcall::pjrt

#endif  // SHARDCALL_PARTITIONER_BINDINGS_PJRT_PJRT_TOPOLOGY_H_
