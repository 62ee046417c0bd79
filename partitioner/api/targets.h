// SPDX-License-Identifier: Apache-2.0
// The registered targets, as the table that `shardcall targets` prints.
#ifndef SHARDCALL_PARTITIONER_API_TARGETS_H_
#define SHARDCALL_PARTITIONER_API_TARGETS_H_

#include <string>

#include "shardcall/kernels/ffi/handler.h"
#include "shardcall/partitioner/custom_call/derive/lowering.h"
#include "shardcall/partitioner/custom_call/registry.h"
#include "shardcall/sharding/base/public.h"

namespace shardcall SHARDCALL_PUBLIC {

// One line per target and platform, by name: platform, api version (1 to 4; 0: the untyped ABI
// that the call itself names), kind of rule, what else is registered (shape inference, a VJP, a
// batching rule), traits, source. `lowerings`, if given, follow the targets.
std::string DescribeTargets(const TargetRegistry& rules, const HandlerRegistry& handlers,
                            const LoweringRegistry* lowerings = nullptr);

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_API_TARGETS_H_
