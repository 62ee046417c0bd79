// SPDX-License-Identifier: Apache-2.0
#ifndef SHARDCALL_PARTITIONER_API_DEVICE_MEMORY_H_
#define SHARDCALL_PARTITIONER_API_DEVICE_MEMORY_H_

#include <cstdint>

#include "shardcall/partitioner/ir/module.h"
#include "shardcall/sharding/base/public.h"

namespace shardcall SHARDCALL_PUBLIC {

// Bytes that one device needs for a per-device module when its instructions run in their order:
// every value is held from where it is computed to its last use. Nothing is fused and no operand
// is overwritten, so a compiler may need less.
struct DeviceMemory {
  int64_t arguments = 0;
  int64_t outputs = 0;
  int64_t temporaries = 0;  // peak, beside arguments and outputs
  int64_t aliased = 0;      // outputs in the memory of donated arguments
  int64_t Peak() const { return arguments + outputs + temporaries - aliased; }
};
DeviceMemory CountDeviceMemory(const Module& local);

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_API_DEVICE_MEMORY_H_
