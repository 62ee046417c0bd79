// SPDX-License-Identifier: Apache-2.0
// What the kernels of sparse_matmul have in common.
#ifndef SHARDCALL_KERNELS_HOST_SPARSE_H_
#define SHARDCALL_KERNELS_HOST_SPARSE_H_

#include "absl/status/status.h"
#include "shardcall/kernels/host/arguments.h"

namespace shardcall::inline internal {

// Of a call with its counts, types, shapes and attributes.
absl::Status CheckSparseMatmul(const HandlerContext& context, const CallArguments& args);

}  // namespace shardcall::inline internal

#endif  // SHARDCALL_KERNELS_HOST_SPARSE_H_
