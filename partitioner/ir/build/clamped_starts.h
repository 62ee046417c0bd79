// SPDX-License-Identifier: Apache-2.0
// Clamps of the starts of slices, updates and windows, by ops of their own.
#ifndef SHARDCALL_PARTITIONER_IR_BUILD_CLAMPED_STARTS_H_
#define SHARDCALL_PARTITIONER_IR_BUILD_CLAMPED_STARTS_H_

#include <cstdint>

#include "absl/types/span.h"
#include "shardcall/partitioner/ir/build/builder.h"

namespace shardcall {
inline namespace internal {

// clamp(0, start, most) of a scalar in the type of `start`, which may hold fewer numbers.
InstrId ClampStart(GraphBuilder& b, InstrId start, int64_t most);
// The same for the index vectors of a gather or scatter of one window, by component.
InstrId ClampIndices(GraphBuilder& b, InstrId indices, int64_t index_vector_dim,
                     absl::Span<const int64_t> most);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_BUILD_CLAMPED_STARTS_H_
