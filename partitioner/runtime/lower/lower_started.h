// SPDX-License-Identifier: Apache-2.0
// Asynchronous pairs of collectives as two steps: one that starts the collective
// and one that takes its results, with the device free in between.
#ifndef SHARDCALL_PARTITIONER_RUNTIME_LOWER_LOWER_STARTED_H_
#define SHARDCALL_PARTITIONER_RUNTIME_LOWER_LOWER_STARTED_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "shardcall/partitioner/ir/module.h"
#include "shardcall/partitioner/runtime/lower/lower_op.h"
#include "shardcall/partitioner/runtime/program.h"

namespace shardcall {

// By position in the computation: starts, and updates of them, of one collective
// that its matching done alone ends. Others run where they stand. `position` is
// by instruction.
std::vector<bool> FindStarted(const Module& module, const Computation& comp,
                              const std::vector<uint32_t>& position);

// `operands`: slots of the start's operands by leaf. The step's one result is a
// number that stands for what is under way.
absl::Status LowerStart(const LowerContext& context, absl::Span<const int32_t> operands,
                        int32_t number, Step* step);
// A step with its results already stated; it reads that number.
void LowerDone(int32_t number, Step* step);

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_RUNTIME_LOWER_LOWER_STARTED_H_
