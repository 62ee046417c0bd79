// SPDX-License-Identifier: Apache-2.0
// What is registered, as the table that `shardcall targets` prints.
#ifndef SHARDCALL_PARTITIONER_API_TARGETS_H_
#define SHARDCALL_PARTITIONER_API_TARGETS_H_

#include <string>

#include "shardcall/kernels/ffi/handler.h"
#include "shardcall/partitioner/custom_call/derive/lowering.h"
#include "shardcall/partitioner/custom_call/registry.h"
#include "shardcall/sharding/base/public.h"

namespace shardcall SHARDCALL_PUBLIC {

// A line per target and platform, by name: platform, api version (1 to 4; 0: the
// untyped ABI that a call says), kind of rule, what else it has (shapes of its
// results, a VJP, a batching rule), traits, source.
// `lowerings`, if given, stand behind the targets.
std::string DescribeTargets(const TargetRegistry& rules, const HandlerRegistry& handlers,
                            const LoweringRegistry* lowerings = nullptr);

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_API_TARGETS_H_
