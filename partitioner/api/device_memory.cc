// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/api/device_memory.h"

#include "shardcall/partitioner/ir/analysis/peak_memory.h"

namespace shardcall {
namespace {

int64_t Bytes(const Shape* shape) {
  int64_t bytes = 0;
  for (int k = 0; k < shape->num_leaves(); ++k) bytes += shape->leaf(k)->byte_size();
  return bytes;
}

}  // namespace

DeviceMemory CountDeviceMemory(const Module& local) {
  DeviceMemory out;
  const Computation& entry = local.comp(local.entry());
  for (InstrId p : entry.parameters) out.arguments += Bytes(local.instr(p).shape);
  out.outputs = Bytes(local.instr(entry.root).shape);
  out.temporaries =
      PeakOfTemporaries(local, [&](InstrId id) { return Bytes(local.instr(id).shape); });
  for (const AliasEntry& alias : local.header.aliases) {
    const Shape* shape = local.instr(entry.root).shape;
    for (int64_t k : alias.output_index) shape = shape->tuple()[k];
    out.aliased += Bytes(shape);
  }
  return out;
}

}  // namespace shardcall
