// SPDX-License-Identifier: Apache-2.0
// Puts the lowerings of a platform in place of composites and of custom calls
// that are marked by name; before partitioning, so that what comes of it has a
// rule like any other call.
#ifndef SHARDCALL_PARTITIONER_API_LOWER_CALLS_H_
#define SHARDCALL_PARTITIONER_API_LOWER_CALLS_H_

#include "absl/status/statusor.h"
#include "shardcall/kernels/ffi/handler.h"
#include "shardcall/partitioner/custom_call/derive/lowering.h"
#include "shardcall/partitioner/custom_call/registry.h"
#include "shardcall/partitioner/ir/module.h"
#include "shardcall/sharding/base/public.h"

namespace shardcall SHARDCALL_PUBLIC {

// `module` with every marked call that a lowering takes as a custom call, with
// converts, copies to other layouts and a tuple around it where they are needed.
// Composites that all skip are plain calls, to be inlined. The module must have
// passed VerifyModule, and the result does. A plain call is marked, too, if it has a
// composite.name, or calls a computation of a name for which there is a lowering
// in particular ("my_gelu", also as "my_gelu.5"). Errors: those of lowerings (E121);
// E119 an answer that does not fit the call: counts, types, results.
absl::StatusOr<Module> LowerCalls(Module module, const LoweringRegistry& lowerings,
                                  absl::string_view platform);

// For any name: a composite for which `handlers` has a handler of the same name,
// and `targets` (null: any) a rule, becomes a call of that, with the composite's
// attributes. So a plugin's kernel takes the place of a body, and none without a
// rule takes that of a body that can be partitioned. Both must outlive it.
LoweringFunction LowerToHandlers(const HandlerRegistry* handlers, const TargetRegistry* targets);

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_API_LOWER_CALLS_H_
