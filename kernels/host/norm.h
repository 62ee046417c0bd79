// SPDX-License-Identifier: Apache-2.0
// Common to rms_norm and its gradient: the shapes of x, gain and rstd.
#ifndef SHARDCALL_KERNELS_HOST_NORM_H_
#define SHARDCALL_KERNELS_HOST_NORM_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "shardcall/kernels/host/arguments.h"

namespace shardcall {
inline namespace internal {

struct NormShape {
  int64_t rows = 0;
  int64_t width = 0;
  int64_t rows_per_gain = 0;  // rows [i n, (i+1) n) use row i of gain
};

// Checks types and shapes of x and of gain.
absl::StatusOr<NormShape> CheckNorm(const CallArguments& args, ArgumentPlace x, ArgumentPlace gain);

// Checks rstd, given x.
absl::Status CheckRstd(const CallArguments& args, ArgumentPlace x, ArgumentPlace rstd);

// The checked arguments of a call of rms_norm.
struct RmsNormCall {
  NormShape shape;
  double eps = 0;
  const BufferView* rstd = nullptr;  // null if the call does not return it
};
absl::StatusOr<RmsNormCall> CheckRmsNorm(const CallArguments& args, const HandlerContext& context);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_KERNELS_HOST_NORM_H_
