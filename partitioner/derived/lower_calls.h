// SPDX-License-Identifier: Apache-2.0
// Replaces composites and custom calls that are marked by name by the lowerings of a platform.
// This runs before partitioning, so that the resulting calls have rules like any other call.
#ifndef SHARDCALL_PARTITIONER_DERIVED_LOWER_CALLS_H_
#define SHARDCALL_PARTITIONER_DERIVED_LOWER_CALLS_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "shardcall/partitioner/custom_call/derive/lowering.h"
#include "shardcall/partitioner/ir/module.h"
#include "shardcall/sharding/base/public.h"

namespace shardcall SHARDCALL_PUBLIC {

// `module` with every marked call that a lowering accepts replaced by a custom call, with
// converts, layout copies and a tuple around it where needed. Composites that all lowerings skip
// become plain calls, to be inlined. A plain call is marked, too, if it has a composite.name, or
// if it calls a computation for whose exact name there is a lowering ("my_gelu", also as
// "my_gelu.5"). The module must have passed VerifyModule, and so does the result. Errors: those of
// lowerings (E121); E119 for an answer that does not fit the call in its counts, types or results.
absl::StatusOr<Module> LowerCalls(Module module, const LoweringRegistry& lowerings,
                                  absl::string_view platform);

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_DERIVED_LOWER_CALLS_H_
