// SPDX-License-Identifier: Apache-2.0
// How much memory a module needs when its instructions run in their order, each value being held
// from where it is computed to its last use. What a compiler does about memory is counted as XLA
// does it (its instruction fusion and its buffer assignment), in one pass without their details:
//   - elementwise ops, broadcasts and ops that move elements are computed where they are used, if
//     only such ops, reductions and updates use them, and are not computed twice if that is dear;
//   - an elementwise op, and an update of a slice, overwrites an operand of the same size that
//     nothing uses later;
//   - a loop keeps its values in the memory of what it begins with, or in a copy where that is a
//     parameter of the computation; its body needs room of its own for a new value where the old
//     one is still used.
#ifndef SHARDCALL_PARTITIONER_IR_ANALYSIS_PEAK_MEMORY_H_
#define SHARDCALL_PARTITIONER_IR_ANALYSIS_PEAK_MEMORY_H_

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
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

// `bytes_of` says what the result of an instruction takes. Without `list`, `held` stays empty.
PeakMemory FindPeakMemory(const Module& module, absl::FunctionRef<int64_t(InstrId)> bytes_of,
                          bool list = false);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_ANALYSIS_PEAK_MEMORY_H_
