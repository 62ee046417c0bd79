// SPDX-License-Identifier: Apache-2.0
#ifndef SHARDCALL_KERNELS_HOST_RELU_H_
#define SHARDCALL_KERNELS_HOST_RELU_H_

#include "absl/status/status.h"
#include "shardcall/kernels/host/arguments.h"

namespace shardcall {
inline namespace internal {

// Checks a call of custom_relu: (x) -> (y) of equal types and shapes, without attributes.
absl::Status CheckRelu(const CallArguments& args, const HandlerContext& context);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_KERNELS_HOST_RELU_H_
