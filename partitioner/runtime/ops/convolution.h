// SPDX-License-Identifier: Apache-2.0
// Data of a convolution step, and its fast paths for floats.
#ifndef SHARDCALL_PARTITIONER_RUNTIME_OPS_CONVOLUTION_H_
#define SHARDCALL_PARTITIONER_RUNTIME_OPS_CONVOLUTION_H_

#include "absl/status/status.h"
#include "shardcall/partitioner/runtime/execute/step_run.h"
#include "shardcall/partitioner/runtime/ops/window.h"
#include "shardcall/partitioner/runtime/program.h"

namespace shardcall {
inline namespace internal {

struct ConvolutionData : OpData {
  WindowDims window;
  Dims lhs_perm;  // to batch, space.., feature
  Dims rhs_perm;  // to space.., in, out
  Dims out_perm;  // from batch, space.., feature
  int64_t feature_groups = 1, batch_groups = 1;
};

// Whether RunFastConvolution supports it: floats without batch groups, and products that are large
// enough for BLAS.
bool IsFastConvolution(const ConvolutionData& data, ElementType lhs, ElementType rhs,
                       const LeafShape& result, int64_t in_features, int64_t out_features);

// Copies a few windows at a time into the rows of a matrix (im2col), and multiplies them directly
// into the result. The results for an image do not depend on the number of images.
absl::Status RunFastConvolution(StepRun& run);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_RUNTIME_OPS_CONVOLUTION_H_
