// SPDX-License-Identifier: Apache-2.0
// Data of a select-and-scatter step, and its fast path.
#ifndef SHARDCALL_PARTITIONER_RUNTIME_OPS_SELECT_AND_SCATTER_H_
#define SHARDCALL_PARTITIONER_RUNTIME_OPS_SELECT_AND_SCATTER_H_

#include "absl/status/status.h"
#include "shardcall/partitioner/runtime/execute/step_run.h"
#include "shardcall/partitioner/runtime/ops/lane_program.h"
#include "shardcall/partitioner/runtime/ops/window.h"
#include "shardcall/partitioner/runtime/program.h"

namespace shardcall {
inline namespace internal {

struct SelectAndScatterData : OpData {
  LaneProgram select, scatter;
  WindowDims window;
};

// Whether RunRowSelectAndScatter supports it: f32, a `select` of one comparison, as in the
// gradient of pooling, and windows of size 1 in the last dimension.
bool IsRowSelectAndScatter(const SelectAndScatterData& data, const LeafShape& result,
                           absl::Span<const int64_t> source_dims);

// Handles the last dimension at once: the same selections and sums in the same order.
absl::Status RunRowSelectAndScatter(StepRun& run);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_RUNTIME_OPS_SELECT_AND_SCATTER_H_
