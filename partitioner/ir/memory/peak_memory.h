// SPDX-License-Identifier: Apache-2.0
// How much memory the buffers of a module (buffers.h) need, placed as XLA's buffer assignment does:
// the large ones first, each in the smallest result of the program that has room for it while it
// lives, before that result is written; the others in one region, where each begins at a multiple
// of an alignment.
#ifndef SHARDCALL_PARTITIONER_IR_MEMORY_PEAK_MEMORY_H_
#define SHARDCALL_PARTITIONER_IR_MEMORY_PEAK_MEMORY_H_

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "shardcall/partitioner/ir/memory/buffers.h"
#include "shardcall/partitioner/ir/memory/memory_rules.h"
#include "shardcall/partitioner/ir/module.h"

namespace shardcall {
inline namespace internal {

struct PeakMemory {
  int64_t temporaries = 0;  // bytes, beside the parameters and the result of the entry
  // Where that is: an instruction of the entry, or one that runs within. Invalid if there are none.
  InstrId at;
  struct Held {
    InstrId value;
    int64_t bytes = 0;
  };
  std::vector<Held> held;  // what they are then, the largest first
};

PeakMemory FindPeakMemory(const Module& module, const MemoryRules& rules);

// The temporaries by a quicker count, without the gaps between buffers: the buffers of a module are
// listed once, and counted for the sizes that its values have on a device, which `bytes_of` says by
// the flat index of a leaf.
BufferList BuffersOf(const Module& module, const MemoryRules& rules);
BufferList WithBytes(const Module& module, BufferList buffers,
                     absl::FunctionRef<int64_t(InstrId, int)> bytes_of);
int64_t EstimatePeakTemporaries(const BufferList& buffers, const MemoryRules& rules);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_MEMORY_PEAK_MEMORY_H_
