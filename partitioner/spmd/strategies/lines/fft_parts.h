// SPDX-License-Identifier: Apache-2.0
// The parts of an FFT, shared by the strategies that take it apart.
#ifndef SHARDCALL_PARTITIONER_SPMD_STRATEGIES_LINES_FFT_PARTS_H_
#define SHARDCALL_PARTITIONER_SPMD_STRATEGIES_LINES_FFT_PARTS_H_

#include "absl/types/span.h"
#include "shardcall/partitioner/ir/attributes.h"
#include "shardcall/partitioner/ir/build/builder.h"

namespace shardcall {
inline namespace internal {

// What the FFT `whole` of x does along `dims`, in ascending order: along its last dimension it may
// make a complex value of a real one, or the other way round.
InstrId FftOfDims(GraphBuilder& b, InstrId x, const FftAttrs& whole, absl::Span<const int> dims);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_SPMD_STRATEGIES_LINES_FFT_PARTS_H_
