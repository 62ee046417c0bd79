// SPDX-License-Identifier: Apache-2.0
// Calls made of calls, as the target's author declared: its VJP (RegisterVjp)
// and its form under vmap (RegisterBatching).
#ifndef SHARDCALL_PARTITIONER_API_DERIVED_CALLS_H_
#define SHARDCALL_PARTITIONER_API_DERIVED_CALLS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "shardcall/partitioner/custom_call/registry.h"
#include "shardcall/partitioner/ir/build/checked_builder.h"
#include "shardcall/sharding/base/public.h"

namespace shardcall SHARDCALL_PUBLIC {

// Whether the VJP has an argument for it. A result without (a norm's rstd, which
// is kept for the VJP alone) is not differentiated.
bool TakesCotangent(const VjpSpec& vjp, int result);

// The gradients of the operands of `call`, a custom call of the computation that
// `b` builds: by operand, invalid where the VJP gives none (an index, say).
// `cotangents` has one value of the shape of each flat result; an invalid one
// stands for zeros, and is the only one for results whose cotangent the VJP does
// not take. A VJP by a computation becomes a call of it, in the sizes of
// this one. Errors E118: no VJP is registered, operands or results that are no
// arrays; E123 cotangents that do not fit; E113 sizes that the computation cannot have.
absl::StatusOr<std::vector<InstrId>> Vjp(CheckedBuilder& b, const TargetRegistry& targets,
                                         InstrId call, absl::Span<const InstrId> cotangents);

// `call`, a custom call of the module on which `b` works, with batched operands:
// operands[k] has the shape of the call's, and one more leading dimension where
// batched[k]. Results have that dimension. The way is the one registered, else the
// target's own `...` where they stand for it, else one call after another in a
// loop. Errors E118, and E123 where the operands do not fit the call.
absl::StatusOr<std::vector<InstrId>> Vmap(CheckedBuilder& b, const TargetRegistry& targets,
                                          InstrId call, absl::Span<const InstrId> operands,
                                          const std::vector<bool>& batched);

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_API_DERIVED_CALLS_H_
