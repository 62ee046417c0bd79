// SPDX-License-Identifier: Apache-2.0
#ifndef SHARDCALL_PARTITIONER_SPMD_PLAN_PROGRAM_FACTS_H_
#define SHARDCALL_PARTITIONER_SPMD_PLAN_PROGRAM_FACTS_H_

#include <optional>
#include <vector>

#include "shardcall/partitioner/ir/memory/buffers.h"

namespace shardcall {
inline namespace internal {

// What all plans of a program share. The first that asks for it finds it.
struct ProgramFacts {
  std::vector<bool> generated;        // GeneratedValues of the program
  std::vector<InstrId> equal;         // EqualValues of the program
  std::optional<BufferList> buffers;  // of whole values, as for GPUs
};

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_SPMD_PLAN_PROGRAM_FACTS_H_
