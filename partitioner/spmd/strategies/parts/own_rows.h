// SPDX-License-Identifier: Apache-2.0
// A few rows of a sharded dimension, wanted by all devices: each has those that lie in its shard,
// and zeros for the others, so that they sum up to the rows.
#ifndef SHARDCALL_PARTITIONER_SPMD_STRATEGIES_PARTS_OWN_ROWS_H_
#define SHARDCALL_PARTITIONER_SPMD_STRATEGIES_PARTS_OWN_ROWS_H_

#include "absl/container/inlined_vector.h"
#include "shardcall/partitioner/spmd/localize/op_builder.h"

namespace shardcall {
inline namespace internal {

// `size` rows of dimension `dim` from row `start` on, an integer scalar that lies within the whole.
struct RowsOfDim {
  int dim;
  InstrId start;
  int64_t size;
};

// x: the shard of `global` under `s`, which shards each of `rows`' dimensions. The result has the
// rows, and -0 (false, 0) for those that lie on other shards.
InstrId TakeOwnRows(OpBuilder& ops, InstrId x, const Shape* global, const Sharding& s,
                    absl::Span<const RowsOfDim> rows);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_SPMD_STRATEGIES_PARTS_OWN_ROWS_H_
