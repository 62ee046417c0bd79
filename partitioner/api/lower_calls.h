// SPDX-License-Identifier: Apache-2.0
// Replaces composites and custom calls that are marked by name: LowerCalls, and lowerings that
// follow from the handlers that are registered.
#ifndef SHARDCALL_PARTITIONER_API_LOWER_CALLS_H_
#define SHARDCALL_PARTITIONER_API_LOWER_CALLS_H_

#include "shardcall/kernels/ffi/handler.h"
#include "shardcall/partitioner/custom_call/derive/lowering.h"
#include "shardcall/partitioner/custom_call/registry.h"
#include "shardcall/partitioner/derived/lower_calls.h"
#include "shardcall/sharding/base/public.h"

namespace shardcall SHARDCALL_PUBLIC {

// A lowering for any name: a composite becomes a call of the same name, with the composite's
// attributes, if `handlers` has a handler and `targets` (null: no check) a rule for it. So a
// plugin's kernel replaces the body, but a kernel without a rule does not replace a body that can
// be partitioned. Both registries must outlive the function.
LoweringFunction LowerToHandlers(const HandlerRegistry* handlers, const TargetRegistry* targets);

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_API_LOWER_CALLS_H_
