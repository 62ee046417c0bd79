// SPDX-License-Identifier: Apache-2.0
#ifndef SHARDCALL_PARTITIONER_IR_MEMORY_LATENCY_HIDING_H_
#define SHARDCALL_PARTITIONER_IR_MEMORY_LATENCY_HIDING_H_

#include <vector>

#include "absl/types/span.h"
#include "shardcall/partitioner/ir/memory/memory_rules.h"
#include "shardcall/partitioner/ir/memory/run_steps.h"
#include "shardcall/partitioner/ir/module.h"

namespace shardcall {
inline namespace internal {

// Moves steps behind collectives on whose results they do not depend, to run beside them, as XLA's
// latency hiding scheduler does: from the end of the computation on, the last of the steps whose
// users are placed, and before each collective, one at a time, such steps until they take as long.
// Marks those beside which steps run, which are started before and waited for after them; `started`
// has an element for each instruction of the module.
std::vector<int> HideLatencies(const Module& m, const RunSteps& steps, absl::Span<const int> order,
                               const StepSeconds& seconds, std::vector<bool>* started);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_MEMORY_LATENCY_HIDING_H_
