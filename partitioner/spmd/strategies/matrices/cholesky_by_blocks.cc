// SPDX-License-Identifier: Apache-2.0
// The Cholesky factor of matrices of which each device has some rows, if the lower triangle is
// taken, else some columns (these are the rows of the conjugate transpose, of which what follows
// speaks). With blocks of n / P rows and columns, device i makes row i of blocks of L. In turn k,
// device k sends its row of blocks, and its block of the diagonal, to the devices behind it:
//   S = A[i,k] - sum over j < k of  L[i,j] L[k,j]^H
//   L[k,k] is the factor of the S of row k, and L[i,k] = S L[k,k]^-H  for the rows behind it
// No device has more than its rows, and each sends about n^2 / 6 elements in place of n^2. (The
// "left-looking" factorization by columns of blocks; Golub and Van Loan, Matrix Computations, 4.2.)
#include <utility>
#include <vector>

#include "shardcall/partitioner/spmd/localize/op_builder.h"
#include "shardcall/partitioner/spmd/plan/strategy.h"
#include "shardcall/partitioner/spmd/strategies/parts/matrices.h"
#include "shardcall/partitioner/spmd/strategies/parts/one_after_another.h"
#include "shardcall/partitioner/spmd/strategies/parts/rows.h"

namespace shardcall {
inline namespace internal {
namespace {

// The dimension that is sharded: the rows of the lower triangle.
int ShardedDim(const Instruction& instr, int rank) {
  return instr.as<CholeskyAttrs>().lower ? rank - 2 : rank - 1;
}

bool Rule(const OpQuery& op, ShardingRule* rule) {
  const Shape* in = op.shapes[0];
  const int d = ShardedDim(op.instr(), in->rank());
  if (in->num_elements() == 0) return false;
  if (!op.operands[0]->HasShardedDim() && !op.wanted[0]->IsDimSharded(d)) return false;
  *rule = *op.rule;
  rule->factors[rule->operands[0].dims[d][0]].kind = FactorKind::kPermutation;
  return true;
}

bool Crosses(const OpQuery&, int) { return true; }

bool Complete(const OpQuery& op, Candidate* c) {
  const Shape* in = op.shapes[0];
  const Sharding& s = *c->operands[0];
  const int d = ShardedDim(op.instr(), in->rank());
  const Turns turns{s.dim(d), s.num_shards(d)};
  if (turns.size == 1) return true;
  if (c->produced[0]->dim(d) != s.dim(d) || turns.size > kMostSteps) return false;
  const double rows = static_cast<double>(CeilDiv(in->dim(d), turns.size));
  const double block =
      static_cast<double>(LocalBytes(in, s)) / static_cast<double>(in->dim(d)) * rows;
  for (int64_t turn = 0; turn + 1 < turns.size; ++turn) {
    AddToLaterTurns(op, *s.mesh(), static_cast<double>(turn + 1) * block, turns, turn, c);
  }
  return true;
}

// The factor of a device's own rows.
class LocalFactor {
 public:
  LocalFactor(OpBuilder& ops, const LocalOp& op, const Turns& turns)
      : ops_(ops), b_(ops.builder()), op_(op), turns_(turns) {}

  // x: [.., n / P, n], rows of the lower triangle with zeros for padding; so is the result.
  InstrId Rows(InstrId x) {
    rank_ = b_.shape(x)->rank();
    block_ = b_.shape(x)->dim(rank_ - 2);
    InstrId made;  // the row of blocks so far
    for (int64_t turn = 0; turn < turns_.size; ++turn) {
      const InstrId next = Columns(x, turn * block_, (turn + 1) * block_);
      const InstrId block = Step(made, next, turn);
      made = made.valid() ? Beside(made, block) : block;
    }
    return made;
  }

 private:
  // The block of column `turn` of this device's row.
  InstrId Step(InstrId made, InstrId next, int64_t turn) {
    const bool last = turn + 1 == turns_.size;
    // Of the device whose turn it is; that of the last has no one behind it.
    InstrId row = made.valid() ? Beside(made, next) : next;
    if (!last) row = ToLaterTurns(ops_.emitter(), row, turns_, turn);
    InstrId own = last ? next : Columns(row, turn * block_, (turn + 1) * block_);
    InstrId rest = next;
    if (made.valid()) {
      const InstrId before = Conjugate(b_, Columns(row, 0, turn * block_));
      own = Less(own, last ? made : Columns(row, 0, turn * block_), before);
      rest = last ? own : Less(next, made, before);
    }
    const InstrId factor = FactorOf(own, turn);
    const Shape* shape = b_.shape(factor);
    const InstrId zeros = b_.BroadcastScalar(b_.Zero(shape->element_type()), shape);
    const InstrId mine = Where(b_, IsTurn(ops_.emitter(), turns_, turn), factor, zeros);
    if (last) return mine;
    TriangularSolveAttrs attrs;
    attrs.lower = true;
    attrs.transpose_a = "ADJOINT";
    const InstrId behind =
        b_.Add(Opcode::kTriangularSolve, {factor, rest}, InternAttributes(b_.context(), attrs));
    return Where(b_, IsAfter(ops_.emitter(), turns_, turn), behind, mine);
  }

  // x - y z^T
  InstrId Less(InstrId x, InstrId y, InstrId z) {
    return b_.Binary(Opcode::kSubtract, x, MultiplyMatrices(b_, y, rank_ - 1, z, rank_ - 1));
  }
  // Of the block of the diagonal that has that turn, by the op itself.
  InstrId FactorOf(InstrId x, int64_t turn) {
    const int64_t rows = op_.operand_shapes[0]->dim(rank_ - 1) - turn * block_;
    if (rows < block_) x = WithUnitsBehind(b_, x, b_.ConstantInt(ElementType::kS32, rows));
    const bool lower = op_.instr.as<CholeskyAttrs>().lower;
    LocalOp of_block = op_;
    of_block.result_shapes[0] = b_.shape(x);
    if (!lower) x = Conjugate(b_, TransposeMatrices(b_, x));
    const InstrId factor = ops_.Clone(of_block, {x})[0];
    return lower ? factor : Conjugate(b_, TransposeMatrices(b_, factor));
  }
  InstrId Columns(InstrId x, int64_t begin, int64_t end) {
    return shardcall::Rows(b_, x, rank_ - 1, begin, end);
  }
  InstrId Beside(InstrId x, InstrId y) {
    const InstrId ids[] = {x, y};
    return b_.Concatenate(ids, rank_ - 1);
  }

  OpBuilder& ops_;
  GraphBuilder& b_;
  const LocalOp& op_;
  const Turns& turns_;
  int rank_ = 0;
  int64_t block_ = 0;
};

LocalIds Emit(OpBuilder& ops, const LocalOp& op) {
  GraphBuilder& b = ops.builder();
  const Sharding& s = *op.decision.operands[0];
  const int d = ShardedDim(op.instr, s.rank());
  const Turns turns{s.dim(d), s.num_shards(d)};
  if (turns.size == 1) return ops.Clone(op, op.operands);
  const Shape* in = op.operand_shapes[0];
  InstrId x = WithZeroPadding(ops.emitter(), op.operands[0], in, s, d);
  const bool by_rows = d == s.rank() - 2;
  if (!by_rows) x = Conjugate(b, TransposeMatrices(b, x));
  x = LocalFactor(ops, op, turns).Rows(x);
  if (!by_rows) x = Conjugate(b, TransposeMatrices(b, x));
  return {ops.emitter().TrimDim(x, 2 * s.rank() - 3 - d, in->dim(d))};
}

}  // namespace

constexpr Strategy kCholeskyByBlocksStrategy{.name = "Cholesky factor by blocks",
                                             .rule = Rule,
                                             .crosses = Crosses,
                                             .complete = Complete,
                                             .emit = Emit};

}  // namespace internal
}  // namespace shardcall
