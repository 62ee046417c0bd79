// SPDX-License-Identifier: Apache-2.0
// What XLA:CPU leaves to a library (YNNPACK, in jaxlib 0.10.2): reductions of floats, each with
// what is computed for it alone and with what alone is computed from it. Within such a call nothing
// is in memory; what it reads and what it gives is
// (xla/backends/cpu/transforms/library_rewriter.cc).
#ifndef SHARDCALL_PARTITIONER_IR_MEMORY_LIBRARY_CALLS_H_
#define SHARDCALL_PARTITIONER_IR_MEMORY_LIBRARY_CALLS_H_

#include <vector>

#include "shardcall/partitioner/ir/module.h"

namespace shardcall {
inline namespace internal {

// By instruction: the one that gives the result of the call that it is within; invalid: none.
std::vector<InstrId> FindLibraryCalls(const Module& m);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_MEMORY_LIBRARY_CALLS_H_
