// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/spmd/strategies/parts/matrices.h"

#include <utility>
#include <vector>

namespace shardcall {
inline namespace internal {

InstrId Conjugate(GraphBuilder& b, InstrId x) {
  if (!IsComplex(b.type(x))) return x;
  return b.Binary(Opcode::kComplex, b.Unary(Opcode::kReal, x),
                  b.Unary(Opcode::kNegate, b.Unary(Opcode::kImag, x)));
}

InstrId TransposeMatrices(GraphBuilder& b, InstrId x) {
  std::vector<int64_t> order(b.shape(x)->rank());
  for (size_t d = 0; d < order.size(); ++d) order[d] = static_cast<int64_t>(d);
  std::swap(order[order.size() - 2], order[order.size() - 1]);
  return b.Transpose(x, order);
}

InstrId WithZeroPadding(Emitter& e, InstrId x, const Shape* global, const Sharding& s, int d) {
  GraphBuilder& b = e.builder();
  const int other = OtherMatrixDim(global->rank(), d);
  x = e.MaskPadding(x, global, s, {d}, b.Zero(b.type(x)));
  return e.PadDim(x, other, b.shape(x)->dim(d) * s.num_shards(d));
}

InstrId WithUnitsBehind(GraphBuilder& b, InstrId x, InstrId rows) {
  const Shape* shape = b.shape(x);
  const int rank = shape->rank();
  const int64_t dims[] = {shape->dim(rank - 2), shape->dim(rank - 1)};
  const InstrId row = b.Iota(ElementType::kS32, dims, 0);
  const InstrId on_diagonal = b.Compare(Direction::kEq, row, b.Iota(ElementType::kS32, dims, 1));
  const InstrId behind = b.Compare(Direction::kGe, row, b.BroadcastScalar(rows, b.shape(row)));
  const InstrId units = b.Binary(Opcode::kAnd, on_diagonal, behind);
  return b.Select(b.Broadcast(units, shape->dims(), {rank - 2, rank - 1}),
                  b.BroadcastScalar(b.One(b.type(x)), shape), x);
}

InstrId MultiplyMatrices(GraphBuilder& b, InstrId x, int x_dim, InstrId y, int y_dim) {
  DotAttrs attrs;
  std::vector<int64_t> batch;
  for (int d = 0; d + 2 < b.shape(x)->rank(); ++d) batch.push_back(d);
  const int64_t of_x[] = {x_dim}, of_y[] = {y_dim};
  attrs.lhs_batch = attrs.rhs_batch = batch;
  attrs.lhs_contracting = of_x;
  attrs.rhs_contracting = of_y;
  // Else a GPU may multiply f32 in fewer bits.
  attrs.operand_precision = "{highest,highest}";
  return b.Dot(x, y, attrs);
}

LocalIds EmitOfBlock(OpBuilder& ops, const LocalOp& op, const LocalIds& operands,
                     absl::Span<const int64_t> dims) {
  LocalOp of_block = op;
  of_block.operands = operands;
  of_block.result_shapes[0] = ops.context().WithDims(op.result_shapes[0], dims);
  return StrategyOf(op.instr.opcode).emit(ops, of_block);
}

}  // namespace internal
}  // namespace shardcall
