// SPDX-License-Identifier: Apache-2.0
// Lowering of one computation: slots, aliases, dead code, steps, last uses.
#ifndef SHARDCALL_PARTITIONER_RUNTIME_LOWER_COMPUTATION_H_
#define SHARDCALL_PARTITIONER_RUNTIME_LOWER_COMPUTATION_H_

#include <vector>

#include "absl/status/status.h"
#include "partitioner/ir/module.h"
#include "partitioner/runtime/lower_op.h"

namespace shardcall {

// True for custom calls that must run although nothing reads them.
bool HasSideEffect(const Instruction& instr);

// `effects`: by computation, whether running it can have an effect. `position`
// is scratch of module.num_instructions() entries.
absl::Status LowerComputation(const Module& module, const LowerOptions& options, CompId comp,
                              const std::vector<bool>& effects, std::vector<uint32_t>* position,
                              DeviceProgram* program, ProgramComputation* out);

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_RUNTIME_LOWER_COMPUTATION_H_
