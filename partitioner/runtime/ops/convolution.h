// SPDX-License-Identifier: Apache-2.0
// Data of a convolution step, and its fast paths for floats.
#ifndef SHARDCALL_PARTITIONER_RUNTIME_OPS_CONVOLUTION_H_
#define SHARDCALL_PARTITIONER_RUNTIME_OPS_CONVOLUTION_H_

#include "absl/status/status.h"
#include "shardcall/partitioner/runtime/execute/step_run.h"
#include "shardcall/partitioner/runtime/ops/window.h"
#include "shardcall/partitioner/runtime/program.h"

namespace shardcall {

struct ConvolutionData : OpData {
  WindowDims window;
  Dims lhs_perm;  // to batch, space.., feature
  Dims rhs_perm;  // to space.., in, out
  Dims out_perm;  // from batch, space.., feature
  int64_t feature_groups = 1, batch_groups = 1;
};

// Whether RunFastConvolution takes it: floats without batch groups, products not
// too small for a BLAS.
bool IsFastConvolution(const ConvolutionData& data, ElementType lhs, ElementType rhs,
                       const LeafShape& result, int64_t in_features, int64_t out_features);

// Windows are laid out as rows a few at a time, and multiplied into the result
// where it lies. The rows of an image do not depend on how many images there are.
absl::Status RunFastConvolution(StepRun& run);

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_RUNTIME_OPS_CONVOLUTION_H_
