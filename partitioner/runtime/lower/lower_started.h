// SPDX-License-Identifier: Apache-2.0
// Asynchronous collectives as two steps: one that starts the collective and one that takes its
// results, so that the device can compute in between.
#ifndef SHARDCALL_PARTITIONER_RUNTIME_LOWER_LOWER_STARTED_H_
#define SHARDCALL_PARTITIONER_RUNTIME_LOWER_LOWER_STARTED_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "shardcall/partitioner/ir/module.h"
#include "shardcall/partitioner/runtime/lower/lower_op.h"
#include "shardcall/partitioner/runtime/program.h"

namespace shardcall {
inline namespace internal {

// By position in the computation: starts (and their updates) of single collectives whose only user
// is the matching done. Others run synchronously. `position` is by instruction.
std::vector<bool> FindStarted(const Module& module, const Computation& comp,
                              const std::vector<uint32_t>& position);

// `operands`: slots of the start's operands by leaf. The step's one result is a number that
// identifies the pending collective.
absl::Status LowerStart(const LowerContext& context, absl::Span<const int32_t> operands,
                        int32_t number, Step* step);
// A step whose results are set already; it reads that number.
void LowerDone(int32_t number, Step* step);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_RUNTIME_LOWER_LOWER_STARTED_H_
