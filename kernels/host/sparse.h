// SPDX-License-Identifier: Apache-2.0
// Common to the kernels of sparse_matmul.
#ifndef SHARDCALL_KERNELS_HOST_SPARSE_H_
#define SHARDCALL_KERNELS_HOST_SPARSE_H_

#include "absl/status/status.h"
#include "shardcall/kernels/host/arguments.h"

namespace shardcall {
inline namespace internal {

// Checks counts, types, shapes and attributes of a call.
absl::Status CheckSparseMatmul(const HandlerContext& context, const CallArguments& args);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_KERNELS_HOST_SPARSE_H_
