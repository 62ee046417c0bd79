// SPDX-License-Identifier: Apache-2.0
// The Cholesky factor of matrices of which each device has some rows, if the lower triangle is
// taken, else some columns (these are the rows of the conjugate transpose, of which what follows
// speaks). With blocks of n / P rows and columns, device i makes row i of blocks of L. In turn k,
// device k sends its row of blocks, and its block of the diagonal, to the devices behind it:
//   S = A[i,k] - sum over j < k of  L[i,j] L[k,j]^H
//   L[k,k] is the factor of the S of row k, and L[i,k] = S L[k,k]^-H  for the rows behind it
// No device has more than its rows, and each sends about n^2 / 6 elements in place of n^2. (The
// "left-looking" factorization by columns of blocks; Golub and Van Loan, Matrix Computations, 4.2.)
#include <cstdint>
#include <limits>
#include <optional>

#include "shardcall/partitioner/custom_call/matrix_calls.h"
#include "shardcall/partitioner/spmd/localize/op_builder.h"
#include "shardcall/partitioner/spmd/plan/strategy.h"
#include "shardcall/partitioner/spmd/strategies/parts/matrices.h"
#include "shardcall/partitioner/spmd/strategies/parts/one_after_another.h"
#include "shardcall/partitioner/spmd/strategies/parts/rows.h"
#include "shardcall/sharding/reshard/reshard.h"

namespace shardcall {
inline namespace internal {
namespace {

// The dimension that is sharded: the rows of the lower triangle.
int ShardedDim(const CholeskyForm& form, int rank) { return form.lower ? rank - 2 : rank - 1; }

bool Rule(const OpQuery& op, ShardingRule* rule) {
  const std::optional<CholeskyForm> form = CholeskyFormOf(op.instr());
  if (!form.has_value()) return false;  // other calls may have no operand
  const Shape* in = op.shapes[0];
  if (in->num_elements() == 0) return false;
  const int d = ShardedDim(*form, in->rank());
  if (!op.operands[0]->HasShardedDim() && !op.wanted[0]->IsDimSharded(d)) return false;
  // A program's or a user's rule for a call may have no factor there.
  if (op.rule->operands[0].dims[d].size() != 1) return false;
  *rule = *op.rule;
  const int f = rule->operands[0].dims[d][0];
  rule->factors[f].kind = FactorKind::kPermutation;
  rule->results[0].dims[d] = {f};
  return true;
}

bool Crosses(const OpQuery&, int) { return true; }

bool Complete(const OpQuery& op, Candidate* c) {
  const Shape* in = op.shapes[0];
  const Sharding& s = *c->operands[0];
  const CholeskyForm form = *CholeskyFormOf(op.instr());
  const int d = ShardedDim(form, in->rank());
  const Turns turns{s.dim(d), s.num_shards(d)};
  if (turns.size == 1) return false;
  if (c->produced[0]->dim(d) != s.dim(d) || turns.size > kMostSteps) return false;
  const double rows = static_cast<double>(CeilDiv(in->dim(d), turns.size));
  const double block =
      static_cast<double>(LocalBytes(in, s)) / static_cast<double>(in->dim(d)) * rows;
  for (int64_t turn = 0; turn + 1 < turns.size; ++turn) {
    AddToLaterTurns(op, *s.mesh(), static_cast<double>(turn + 1) * block, turns, turn, c);
  }
  if (form.is_call) {
    const double bytes = static_cast<double>(LocalBytes(op.result(1), *c->produced[1]));
    c->AddEmitted(
        op.module.context(),
        AllReduceBytes(PartialOp::kMin, ElementType::kS32, bytes, static_cast<double>(turns.size)),
        *s.mesh(), turns.axes, Collective::kAllReduce);
  }
  return true;
}

double Seconds(const CostModel& cost, const Module& module, const Instruction& instr,
               const Decision& d) {
  const Sharding& s = *d.operands[0];
  const int64_t turns = s.num_shards(ShardedDim(*CholeskyFormOf(instr), s.rank()));
  return SecondsOfTurns(turns, cost, module, instr, d);
}

// Columns move to rows.
Assignments Propose(const ShardingRule& rule, const IndexSet& allowed,
                    absl::Span<const LeadingState> leading, const FactorAssignment& from) {
  return kMovedStrategy.propose(rule, allowed, leading, from);
}

// The factor of a device's own rows.
class LocalFactor {
 public:
  LocalFactor(OpBuilder& ops, const LocalOp& op, const Turns& turns)
      : ops_(ops), b_(ops.builder()), op_(op), form_(*CholeskyFormOf(op.instr)), turns_(turns) {}

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

  // After that, the status of the whole: that of the first block that is not positive definite.
  InstrId Status() {
    const InstrId all = ops_.emitter().AllReduce(status_, turns_.axes, PartialOp::kMin);
    const InstrId fine = b_.Compare(Direction::kEq, all, None(b_.shape(all)));
    return b_.Select(fine, b_.BroadcastScalar(b_.Zero(ElementType::kS32), b_.shape(all)), all);
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
    const InstrId above =
        form_.is_call ? next : b_.BroadcastScalar(b_.Zero(shape->element_type()), shape);
    const InstrId diagonal = form_.is_call ? WithAbove(factor, next) : factor;
    const InstrId mine = Where(b_, IsTurn(ops_.emitter(), turns_, turn), diagonal, above);
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
    const bool lower = form_.lower;
    if (!lower) x = Conjugate(b_, TransposeMatrices(b_, x));
    const LocalIds results = EmitOfBlock(ops_, op_, {x}, b_.shape(x)->dims());
    if (form_.is_call) NoteStatus(results[1], turn);
    return lower ? results[0] : Conjugate(b_, TransposeMatrices(b_, results[0]));
  }
  // The lower triangle of x, and what `y` has above it.
  InstrId WithAbove(InstrId x, InstrId y) {
    const Shape* shape = b_.shape(x);
    const InstrId row = b_.Iota(ElementType::kS32, shape->dims(), rank_ - 2);
    const InstrId column = b_.Iota(ElementType::kS32, shape->dims(), rank_ - 1);
    return b_.Select(b_.Compare(Direction::kGe, row, column), x, y);
  }
  // The order of a minor of a block becomes one of a minor of the whole.
  void NoteStatus(InstrId of_block, int64_t turn) {
    const Shape* shape = b_.shape(of_block);
    const auto all = [&](int64_t v) {
      return b_.BroadcastScalar(b_.ConstantInt(ElementType::kS32, v), shape);
    };
    const InstrId order = b_.Binary(Opcode::kAdd, of_block, all(turn * block_));
    const InstrId fails = b_.Compare(Direction::kNe, of_block, all(0));
    const InstrId found = b_.Select(fails, order, None(shape));
    const InstrId before = status_.valid() ? status_ : None(shape);
    status_ = Where(b_, IsTurn(ops_.emitter(), turns_, turn), found, before);
  }
  InstrId None(const Shape* shape) {
    constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
    return b_.BroadcastScalar(b_.ConstantInt(ElementType::kS32, kMost), shape);
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
  const CholeskyForm form_;
  const Turns& turns_;
  InstrId status_;  // of this device's block
  int rank_ = 0;
  int64_t block_ = 0;
};

LocalIds Emit(OpBuilder& ops, const LocalOp& op) {
  GraphBuilder& b = ops.builder();
  const Sharding& s = *op.decision.operands[0];
  const Shape* in = op.operand_shapes[0];
  const CholeskyForm form = *CholeskyFormOf(op.instr);
  const int d = ShardedDim(form, s.rank());
  const Turns turns{s.dim(d), s.num_shards(d)};
  LocalFactor factor(ops, op, turns);
  InstrId x = WithZeroPadding(ops.emitter(), op.operands[0], in, s, d);
  if (!form.lower) x = Conjugate(b, TransposeMatrices(b, x));
  x = factor.Rows(x);
  if (!form.lower) x = Conjugate(b, TransposeMatrices(b, x));
  LocalIds results = {ops.emitter().TrimDim(x, OtherMatrixDim(s.rank(), d), in->dim(d))};
  if (form.is_call) results.push_back(factor.Status());
  return results;
}

}  // namespace

constexpr Strategy kCholeskyByBlocksStrategy{.name = "Cholesky factor by blocks",
                                             .rule = Rule,
                                             .crosses = Crosses,
                                             .complete = Complete,
                                             .seconds = Seconds,
                                             .propose = Propose,
                                             .emit = Emit};

}  // namespace internal
}  // namespace shardcall
