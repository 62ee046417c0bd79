// SPDX-License-Identifier: Apache-2.0
// Matrices in the last two dimensions of values, of which all other dimensions are the same.
#ifndef SHARDCALL_PARTITIONER_SPMD_STRATEGIES_PARTS_MATRICES_H_
#define SHARDCALL_PARTITIONER_SPMD_STRATEGIES_PARTS_MATRICES_H_

#include "shardcall/partitioner/ir/build/builder.h"
#include "shardcall/partitioner/spmd/localize/op_builder.h"

namespace shardcall {
inline namespace internal {

// Of the last two dimensions the one that is not d.
inline int OtherMatrixDim(int rank, int d) { return 2 * rank - 3 - d; }
// The complex conjugate; x itself, if it is real.
InstrId Conjugate(GraphBuilder& b, InstrId x);
// x with its last two dimensions swapped.
InstrId TransposeMatrices(GraphBuilder& b, InstrId x);
// Of matrices `global` under `s`, of which the rows or columns (dimension d) are sharded, one
// device's `x` with zeros for padding, and the other dimension as long as all shards together.
InstrId WithZeroPadding(Emitter& e, InstrId x, const Shape* global, const Sharding& s, int d);
// x, square blocks of the diagonal of such matrices, with 1 on it behind the first `rows` rows, an
// s32 scalar.
InstrId WithUnitsBehind(GraphBuilder& b, InstrId x, InstrId rows);
// The products of matrices of x and y, of which dimensions x_dim and y_dim, each one of the last
// two, are summed over: in full precision. The rows of a product are the other dimension of x.
InstrId MultiplyMatrices(GraphBuilder& b, InstrId x, int x_dim, InstrId y, int y_dim);

// The op on these operands, as its own strategy emits it; its first result has the dimensions
// `dims`, the others have those that the local op has.
LocalIds EmitOfBlock(OpBuilder& ops, const LocalOp& op, const LocalIds& operands,
                     absl::Span<const int64_t> dims);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_SPMD_STRATEGIES_PARTS_MATRICES_H_
