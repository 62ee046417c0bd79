// SPDX-License-Identifier: Apache-2.0
#ifndef SHARDCALL_PARTITIONER_SPMD_PLAN_PROGRAM_FACTS_H_
#define SHARDCALL_PARTITIONER_SPMD_PLAN_PROGRAM_FACTS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "shardcall/partitioner/ir/analysis/read_rows.h"
#include "shardcall/partitioner/ir/memory/buffers.h"
#include "shardcall/partitioner/spmd/plan/accumulators.h"

namespace shardcall {
inline namespace internal {

// What all plans of a program share. The first that asks for it finds it.
struct ProgramFacts {
  std::vector<bool> generated;        // GeneratedValues of the program
  std::vector<InstrId> equal;         // EqualValues of the program
  std::vector<bool> repeats;          // by instruction: whether operands are the same value
  std::vector<uint32_t> num_uses;     // by instruction: PlanTable::num_uses
  std::vector<InstrId> last_user;     // by instruction: PlanTable::last_user
  std::optional<BufferList> buffers;  // of whole values, as for GPUs
  std::optional<Accumulators> accumulators;
  absl::flat_hash_map<InstrId, ReadRows> read_rows;  // ReadRowsOfSorts of the program
};

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_SPMD_PLAN_PROGRAM_FACTS_H_
