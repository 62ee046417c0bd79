// SPDX-License-Identifier: Apache-2.0
// The VJP of a custom call, as the target's author declared it (RegisterVjp).
#ifndef SHARDCALL_PARTITIONER_DERIVED_VJP_H_
#define SHARDCALL_PARTITIONER_DERIVED_VJP_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "shardcall/partitioner/custom_call/registry.h"
#include "shardcall/partitioner/ir/build/checked_builder.h"
#include "shardcall/sharding/base/public.h"

namespace shardcall SHARDCALL_PUBLIC {

// Whether the VJP takes the cotangent of flat result `result`. A result whose cotangent it does
// not take (a norm's rstd, which is kept for the VJP only) is not differentiated.
bool TakesCotangent(const VjpSpec& vjp, int result);

// The gradients of the operands of `call`, a custom call of the computation that `b` builds: by
// operand, invalid where the VJP gives none (for an index, say). `cotangents` has one value of the
// shape of each flat result; an invalid one stands for zeros, and must be given for results whose
// cotangent the VJP does not take. A VJP that is declared as a computation becomes a call of it,
// resized to the shapes of this call. Errors E118: no VJP is registered, or operands or results
// are not arrays; E123: cotangents that do not fit; E113: sizes that the computation cannot have.
absl::StatusOr<std::vector<InstrId>> Vjp(CheckedBuilder& b, const TargetRegistry& targets,
                                         InstrId call, absl::Span<const InstrId> cotangents);

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_DERIVED_VJP_H_
