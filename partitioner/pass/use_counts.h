// SPDX-License-Identifier: Apache-2.0
#ifndef SHARDCALL_PARTITIONER_PASS_USE_COUNTS_H_
#define SHARDCALL_PARTITIONER_PASS_USE_COUNTS_H_

#include <vector>

#include "shardcall/partitioner/ir/module.h"

namespace shardcall {
inline namespace internal {

// By instruction, how many operands it is.
inline std::vector<int> UseCounts(const Module& m) {
  std::vector<int> uses(m.num_instructions());
  for (int k = 0; k < m.num_instructions(); ++k) {
    for (const InstrId o : m.operands(InstrId(k))) ++uses[o.value];
  }
  return uses;
}

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_PASS_USE_COUNTS_H_
