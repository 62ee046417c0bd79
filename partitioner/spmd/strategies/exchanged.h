// SPDX-License-Identifier: Apache-2.0
// Shared by the strategies that exchange halos.
#ifndef SHARDCALL_PARTITIONER_SPMD_STRATEGIES_EXCHANGED_H_
#define SHARDCALL_PARTITIONER_SPMD_STRATEGIES_EXCHANGED_H_

#include "shardcall/partitioner/spmd/localize/localizer.h"

namespace shardcall::inline internal {

// Strategy::crosses of those that exchange any dimension of operand 0 that is one factor.
bool HasDimInFirst(const OpQuery& op, int f);

// Operand k of the op, after its exchanges, with `fill` (a scalar) where they have brought elements
// from outside of the operand.
InstrId FilledOutside(Localizer& l, const LocalOp& op, int k, InstrId fill);

}  // namespace shardcall::inline internal

#endif  // SHARDCALL_PARTITIONER_SPMD_STRATEGIES_EXCHANGED_H_
