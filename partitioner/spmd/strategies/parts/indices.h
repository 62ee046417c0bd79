// SPDX-License-Identifier: Apache-2.0
// Helpers for the indices of gather and scatter.
#ifndef SHARDCALL_PARTITIONER_SPMD_STRATEGIES_PARTS_INDICES_H_
#define SHARDCALL_PARTITIONER_SPMD_STRATEGIES_PARTS_INDICES_H_

#include "shardcall/partitioner/spmd/localize/op_builder.h"

namespace shardcall {
inline namespace internal {

// The indices as s32 (s64 for u32 and 64-bit types), so that offsets can be subtracted without
// wrapping.
InstrId WideIndices(GraphBuilder& b, InstrId indices);
// Component c of the index vectors, as an array of the indices' shape without the dimension of
// the vectors.
InstrId IndexComponent(GraphBuilder& b, InstrId indices, int64_t index_vector_dim, int64_t c);
// Replaces component c by `component`.
InstrId ReplaceComponent(GraphBuilder& b, InstrId indices, InstrId component,
                         int64_t index_vector_dim, int64_t c);
// A scalar or a value, broadcast in the type and shape of `like`.
InstrId SplatLike(GraphBuilder& b, InstrId scalar, InstrId like);
InstrId SplatIntLike(GraphBuilder& b, int64_t value, InstrId like);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_SPMD_STRATEGIES_PARTS_INDICES_H_
