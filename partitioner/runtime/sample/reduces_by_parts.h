// SPDX-License-Identifier: Apache-2.0
#ifndef SHARDCALL_PARTITIONER_RUNTIME_SAMPLE_REDUCES_BY_PARTS_H_
#define SHARDCALL_PARTITIONER_RUNTIME_SAMPLE_REDUCES_BY_PARTS_H_

#include "shardcall/partitioner/ir/module.h"

namespace shardcall {
inline namespace internal {

// Whether the reduction, or that of each window of a reduce-window, may be done in parts, each from
// the initial values, whose results are reduced in the same way. Its computation is evaluated on
// samples of what it may meet: elements of the operands, of which some may be known to be one
// constant, and what they are reduced to. It must be associative and commutative up to rounding, as
// HLO demands of it, and combining a sample with the initial values, on either side, must leave it
// as it is. HLO does not demand the latter: an initial value that is not neutral is to count once.
// False if initial values are not constants, and for types that are neither integers nor floats nor
// predicates.
bool ReducesByParts(const Module& m, InstrId reduce);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_RUNTIME_SAMPLE_REDUCES_BY_PARTS_H_
