// SPDX-License-Identifier: Apache-2.0
// The shipped targets, registered by an explicit call.
#ifndef SHARDCALL_KERNELS_BUILTIN_H_
#define SHARDCALL_KERNELS_BUILTIN_H_

#include "absl/status/status.h"
#include "shardcall/kernels/ffi/handler.h"
#include "shardcall/sharding/base/public.h"

namespace shardcall SHARDCALL_PUBLIC {

// Registers every handler of kernels/host/kernels.h for platform Host, and those of
// kernels/cuda/kernels.h for CUDA. Fails only if a name is taken; the other handlers are registered
// all the same.
absl::Status RegisterBuiltinHandlers(HandlerRegistry& registry);

}  // namespace shardcall

#endif  // SHARDCALL_KERNELS_BUILTIN_H_
