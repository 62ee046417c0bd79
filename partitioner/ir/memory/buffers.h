// SPDX-License-Identifier: Apache-2.0
// The buffers that a module needs when its instructions run in their order, each value being held
// from where it is computed to its last use. What a compiler does about memory is counted as XLA
// does it (its copy insertion and its buffer assignment), in one pass without their details:
//   - what is computed where it is used has none (fused_ops.h);
//   - an elementwise op, and an update of a slice, overwrites an operand of the same size that
//     nothing uses later;
//   - a loop keeps its values in the memory of what it begins with, or in a copy where that is a
//     parameter of the computation, or is used after it; its body needs room of its own for a new
//     value where the old one is still used.
#ifndef SHARDCALL_PARTITIONER_IR_MEMORY_BUFFERS_H_
#define SHARDCALL_PARTITIONER_IR_MEMORY_BUFFERS_H_

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "shardcall/partitioner/ir/memory/memory_rules.h"
#include "shardcall/partitioner/ir/module.h"

namespace shardcall {
inline namespace internal {

// Memory that is in use from `begin` to `end`, both included. Times count the instructions as they
// run, those of loops and branches where these stand.
struct Buffer {
  InstrId value;  // whose memory it is; a call stands for all that its computation needs
  int64_t bytes = 0;
  int begin = 0, end = 0;
  // Which leaf of it. kTable: the addresses of a tuple's elements, which have a place of their own.
  // kWithin: what is needed within a call.
  int leaf = 0;
  static constexpr int kTable = -1, kWithin = -2;
};

// The memory of a result of the program, which the caller has.
struct ResultBuffer {
  int64_t bytes = 0;
  int free_from = 0;  // after the last use of the parameter that is donated for it
  int written = 0;
};

// What the buffers of a computation are.
struct BufferList {
  std::vector<Buffer> temporaries;
  std::vector<ResultBuffer> results;  // of the entry, leaf by leaf
  int end = 0;                        // after all times
};

// Calls `shared_peak` for each computation that several instructions call, callees first, and
// counts what it returns at each of these; the buffers of the others are listed where they are
// called.
BufferList ListBuffers(const Module& module, const MemoryRules& rules,
                       absl::FunctionRef<int64_t(const BufferList&)> shared_peak);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_MEMORY_BUFFERS_H_
