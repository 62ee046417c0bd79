// SPDX-License-Identifier: Apache-2.0
// Data of a select-and-scatter step, and its fast path.
#ifndef SHARDCALL_PARTITIONER_RUNTIME_SELECT_AND_SCATTER_H_
#define SHARDCALL_PARTITIONER_RUNTIME_SELECT_AND_SCATTER_H_

#include "absl/status/status.h"
#include "partitioner/runtime/lane_program.h"
#include "partitioner/runtime/program.h"
#include "partitioner/runtime/step_run.h"
#include "partitioner/runtime/window.h"

namespace shardcall {

struct SelectAndScatterData : OpData {
  LaneProgram select, scatter;
  WindowDims window;
};

// Whether RunRowSelectAndScatter takes it: a `select` of one comparison, as in
// the gradient of pooling, and windows that do not reach over the last dimension.
bool IsRowSelectAndScatter(const SelectAndScatterData& data, const LeafShape& result,
                           absl::Span<const int64_t> source_dims);

// The last dimension at once: the same selections and sums in the same order.
absl::Status RunRowSelectAndScatter(StepRun& run);

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_RUNTIME_SELECT_AND_SCATTER_H_
