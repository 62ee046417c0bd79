// SPDX-License-Identifier: Apache-2.0
// The parts of an FFT, shared by the strategies that take it apart.
#ifndef SHARDCALL_PARTITIONER_SPMD_STRATEGIES_LINES_FFT_PARTS_H_
#define SHARDCALL_PARTITIONER_SPMD_STRATEGIES_LINES_FFT_PARTS_H_

#include "absl/types/span.h"
#include "shardcall/partitioner/ir/attributes.h"
#include "shardcall/partitioner/ir/build/builder.h"
#include "shardcall/sharding/sharding.h"

namespace shardcall {
inline namespace internal {

// What the FFT `whole` of x does along `dims`, in ascending order: along its last dimension it may
// make a complex value of a real one, or the other way round.
InstrId FftOfDims(GraphBuilder& b, InstrId x, const FftAttrs& whole, absl::Span<const int> dims);

// How many rows a line of `size` elements on `shards` shards is seen as: a multiple of the shards,
// as is the number of columns, and near to that; 0 if the line has no such rows and columns.
int64_t NumRowsOfLine(int64_t size, int64_t shards);

// Lines, the last dimension of a value in state `s`, seen as two dimensions: the line's axes may be
// on the first or on the second of them.
struct LineAsPlane {
  const Shape* global;
  const Sharding *by_first, *by_second;
};
LineAsPlane AsPlane(Context& context, ElementType type, const Shape* lines, const Sharding& s,
                    int64_t first, int64_t second);

// x times w(n)^(i j) for each element [.., i, j], with w(n) = exp(-2 pi i / n), or its inverse. x
// is a shard of the second dimension, of which it has those from `start` on, or of the first.
InstrId TimesTwiddles(GraphBuilder& b, InstrId x, int64_t n, bool first_is_sharded, InstrId start,
                      bool inverse);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_SPMD_STRATEGIES_LINES_FFT_PARTS_H_
