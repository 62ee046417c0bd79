// SPDX-License-Identifier: Apache-2.0
#ifndef SHARDCALL_PARTITIONER_IR_MEMORY_DONATIONS_H_
#define SHARDCALL_PARTITIONER_IR_MEMORY_DONATIONS_H_

#include <vector>

#include "shardcall/partitioner/ir/module.h"

namespace shardcall {
inline namespace internal {

// Which results are in the memory of which parameters: what the program says, and a donated
// parameter for each result of its size, the large ones first, as XLA matches them (its
// OptimizeInputOutputBufferAlias).
std::vector<AliasEntry> ResultsInParameters(const Module& m);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_MEMORY_DONATIONS_H_
