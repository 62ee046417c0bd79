// SPDX-License-Identifier: Apache-2.0
// Lowering of one computation: slots, aliases, dead code, steps, last uses.
#ifndef SHARDCALL_PARTITIONER_RUNTIME_LOWER_LOWER_COMPUTATION_H_
#define SHARDCALL_PARTITIONER_RUNTIME_LOWER_LOWER_COMPUTATION_H_

#include <vector>

#include "absl/status/status.h"
#include "shardcall/partitioner/ir/analysis/liveness.h"
#include "shardcall/partitioner/ir/module.h"
#include "shardcall/partitioner/runtime/lower/lower_op.h"

namespace shardcall {
inline namespace internal {

// `live`: at kRunning. `position` is scratch with module.num_instructions() entries. Small
// callees of `call` are lowered in place until *inline_budget, counted in instructions, is used
// up.
absl::Status LowerComputation(const Module& module, const LowerOptions& options, CompId comp,
                              const Liveness& live, std::vector<uint32_t>* position,
                              int64_t* inline_budget, DeviceProgram* program,
                              ProgramComputation* out);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_RUNTIME_LOWER_LOWER_COMPUTATION_H_
