// SPDX-License-Identifier: Apache-2.0
// Reductions by the usual monoids. The order of a sum depends on the reduced
// extent only, not on where the dimension lies: element r goes to partial sum
// r % 8, and the eight are added in a tree. Floats are summed and multiplied in
// f64 and rounded once.
#ifndef SHARDCALL_PARTITIONER_RUNTIME_REDUCE_KERNELS_H_
#define SHARDCALL_PARTITIONER_RUNTIME_REDUCE_KERNELS_H_

#include <cstdint>

#include "partitioner/ir/opcode.h"
#include "sharding/element_type.h"

namespace shardcall {

// `in` is [outer, extent, inner], `out` is [outer, inner], of the given type;
// out[a, b] = init op in[a, 0, b] op in[a, 1, b] ..
using ReduceFn = void (*)(ElementType type, const void* in, const void* init, void* out,
                          int64_t outer, int64_t extent, int64_t inner);

// Null if there is none.
ReduceFn FindReduceFn(Opcode monoid, ElementType type);

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_RUNTIME_REDUCE_KERNELS_H_
