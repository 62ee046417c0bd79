// SPDX-License-Identifier: Apache-2.0
// Rows of a dimension of a shard, and those that lie partly in one.
#ifndef SHARDCALL_PARTITIONER_SPMD_STRATEGIES_PARTS_ROWS_H_
#define SHARDCALL_PARTITIONER_SPMD_STRATEGIES_PARTS_ROWS_H_

#include "shardcall/partitioner/ir/build/builder.h"

namespace shardcall {
inline namespace internal {

// Rows [begin, end) of dimension `dim`.
InstrId Rows(GraphBuilder& b, InstrId x, int dim, int64_t begin, int64_t end);

// x with `rows` more rows of `value`, a scalar, before and behind dimension `dim`.
InstrId WithRowsAround(GraphBuilder& b, InstrId x, int dim, int64_t rows, InstrId value);

// `size` rows, of which row j is row j + shift of x; any others where x has no such row.
InstrId ShiftedRows(GraphBuilder& b, InstrId x, int dim, InstrId shift, int64_t size);

// pred[size]: whether j + shift is in [0, rows), by j.
InstrId RowsInRange(GraphBuilder& b, InstrId shift, int64_t size, int64_t rows);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_SPMD_STRATEGIES_PARTS_ROWS_H_
