// SPDX-License-Identifier: Apache-2.0
// The form of a custom call under vmap, as the target's author declared it (RegisterBatching).
#ifndef SHARDCALL_PARTITIONER_DERIVED_VMAP_H_
#define SHARDCALL_PARTITIONER_DERIVED_VMAP_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "shardcall/partitioner/custom_call/registry.h"
#include "shardcall/partitioner/ir/build/checked_builder.h"
#include "shardcall/sharding/base/public.h"

namespace shardcall SHARDCALL_PUBLIC {

// `call`, a custom call of the module that `b` builds, with batched operands: operands[k] has the
// shape of the call's operand, with one more leading dimension where batched[k]. All results have
// that dimension. Uses the batching that is registered, else the `...` of the target's rule if the
// batch fits it, else a loop with one call per iteration. Errors E118, and E123 where the operands
// do not fit the call.
absl::StatusOr<std::vector<InstrId>> Vmap(CheckedBuilder& b, const TargetRegistry& targets,
                                          InstrId call, absl::Span<const InstrId> operands,
                                          const std::vector<bool>& batched);

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_DERIVED_VMAP_H_
