// SPDX-License-Identifier: Apache-2.0
// Triangular systems op(A) X = B, or X op(A) = B, of whose matrix each device has some rows or some
// columns: substitution by blocks. Each device solves for the unknowns of its shard in its turn; B
// and X are sharded as A is. Only blocks of X, or as many sums, are sent, A is not.
//
// Either a device has the coefficients of its equations: then it sends its unknowns to those behind
// it, who subtract what they add to their equations. Or it has the coefficients of its unknowns in
// all equations: then those before it send what theirs add to its equations, summed up. (The
// "fan-out" and "fan-in" algorithms; Heath and Romine, Parallel Solution of Triangular Systems on
// Distributed-Memory Multiprocessors, 1988.)
#include <optional>
#include <vector>

#include "shardcall/partitioner/custom_call/matrix_calls.h"
#include "shardcall/partitioner/spmd/localize/exchange.h"
#include "shardcall/partitioner/spmd/localize/op_builder.h"
#include "shardcall/partitioner/spmd/plan/strategy.h"
#include "shardcall/partitioner/spmd/strategies/parts/matrices.h"
#include "shardcall/partitioner/spmd/strategies/parts/one_after_another.h"
#include "shardcall/partitioner/spmd/strategies/parts/rows.h"

namespace shardcall {
inline namespace internal {
namespace {

using Form = TriangularSolveForm;

// The dimension of the matrix that is sharded: its rows, if these are; -1 if none is.
int ShardedDim(const Sharding& matrix) {
  const int rank = matrix.rank();
  return matrix.IsDimSharded(rank - 2) ? rank - 2 : matrix.IsDimSharded(rank - 1) ? rank - 1 : -1;
}
// That of the right sides whose places are those of the unknowns.
int SolvedDim(const Form& form, int rank) { return form.left ? rank - 2 : rank - 1; }
// That of the matrix which has the equations.
int EquationDim(const Form& form, int rank) {
  return form.left != form.transposed ? rank - 2 : rank - 1;
}

// Whether the last two dimensions of each value have one factor each, as a program's or a user's
// rule for a call may not say.
bool HasFactors(const ShardingRule& rule, int rank) {
  for (const TensorFactors* t : {&rule.operands[0], &rule.operands[1], &rule.results[0]}) {
    if (t->dims[rank - 2].size() != 1 || t->dims[rank - 1].size() != 1) return false;
  }
  return true;
}

// Right sides are independent, and where they are there are the results, whatever the rule of a
// call says. `free`: their dimension.
void LetRightSidesPass(int free, ShardingRule* rule) {
  const int g = rule->operands[1].dims[free][0];
  rule->factors[g].kind = FactorKind::kPassThrough;
  rule->results[0].dims[free] = {g};
}

bool Rule(const OpQuery& op, ShardingRule* rule) {
  const std::optional<Form> form = TriangularSolveFormOf(op.instr());
  if (!form.has_value()) return false;
  const Shape *matrix = op.shapes[0], *right = op.shapes[1];
  const int rank = matrix->rank(), d = ShardedDim(*op.operands[0]);
  if (d < 0 || matrix->num_elements() == 0 || right->num_elements() == 0) return false;
  if (!HasFactors(*op.rule, rank)) return false;
  *rule = *op.rule;
  // The unknowns are those of the sharded dimension; the other one is whole.
  const int solved = SolvedDim(*form, rank), free = OtherMatrixDim(rank, solved);
  const int f = rule->operands[1].dims[solved][0];
  auto& dims = rule->operands[0].dims;
  const int other = dims[rank - 2][0] == f ? dims[rank - 1][0] : dims[rank - 2][0];
  dims[d] = {f};
  dims[OtherMatrixDim(rank, d)] = {other};
  rule->factors[f].kind = FactorKind::kPermutation;
  rule->results[0].dims[solved] = {f};
  LetRightSidesPass(free, rule);
  return true;
}

// Of a call whose matrix is whole.
bool RightSidesRule(const OpQuery& op, ShardingRule* rule) {
  const std::optional<Form> form = TriangularSolveFormOf(op.instr());
  if (!form.has_value() || op.shapes[1]->num_elements() == 0) return false;
  const int rank = op.shapes[0]->rank(), free = OtherMatrixDim(rank, SolvedDim(*form, rank));
  if (!op.operands[1]->IsDimSharded(free) && !op.wanted[0]->IsDimSharded(free)) return false;
  if (!HasFactors(*op.rule, rank)) return false;
  *rule = *op.rule;
  LetRightSidesPass(free, rule);
  return true;
}

bool Crosses(const OpQuery&, int) { return true; }

// Who computes when, where A is in state `matrix`, sharded in dimension d.
Turns TurnsOf(const Form& form, const Sharding& matrix, int d) {
  // Of op(A) X = B the first unknown is known first if op(A) is lower, of X op(A) = B if it is not.
  const bool first = (form.lower != form.transposed) == form.left;
  return {matrix.dim(d), matrix.num_shards(d), !first};
}

bool Complete(const OpQuery& op, Candidate* c) {
  const Shape *matrix = op.shapes[0], *right = op.shapes[1];
  const Sharding& s = *c->operands[0];
  const Form form = *TriangularSolveFormOf(op.instr());
  const int rank = matrix->rank(), d = ShardedDim(s), solved = SolvedDim(form, rank);
  if (d < 0) return false;
  const Turns turns = TurnsOf(form, s, d);
  if (turns.size > kMostSteps) return false;
  for (const Sharding* of : {c->operands[1], c->produced[0]}) {
    if (of->dim(solved) != s.dim(d)) return false;
  }
  const double bytes = static_cast<double>(LocalBytes(right, *c->operands[1]));
  for (int64_t turn = 0; turn + 1 < turns.size; ++turn) {
    if (d == EquationDim(form, rank)) {
      AddToLaterTurns(op, *s.mesh(), bytes, turns, turn, c);
    } else {
      AddSumOfEarlierTurns(op, *s.mesh(), bytes, turns, turn + 1, c);
    }
  }
  return true;
}

double Seconds(const CostModel& cost, const Module& module, const Instruction& instr,
               const Decision& decision) {
  const Sharding& s = *decision.operands[0];
  return SecondsOfTurns(s.num_shards(ShardedDim(s)), cost, module, instr, decision);
}

// Of one device.
class LocalSolve {
 public:
  LocalSolve(OpBuilder& ops, const LocalOp& op, const Turns& turns, int d)
      : ops_(ops),
        b_(ops.builder()),
        op_(op),
        form_(*TriangularSolveFormOf(op.instr)),
        turns_(turns),
        rank_(b_.shape(op.operands[0])->rank()),
        whole_(OtherMatrixDim(rank_, d)),
        block_(b_.shape(op.operands[0])->dim(d)) {
    Emitter& e = ops.emitter();
    const Shape *matrix = op.operand_shapes[0], *right = op.operand_shapes[1];
    const Sharding& s = *op.decision.operands[0];
    matrix_ = WithZeroPadding(e, op.operands[0], matrix, s, d);
    right_ = e.MaskPadding(op.operands[1], right, *op.decision.operands[1],
                           {SolvedDim(form_, rank_)}, b_.Zero(b_.type(op.operands[1])));
    std::vector<int64_t> places(turns.size);
    for (int64_t k = 0; k < turns.size; ++k) places[k] = k * block_;
    diagonal_ = CutByShard(e, matrix_, whole_, turns.axes, places, block_);
    if (block_ * turns.size == matrix->dim(d)) return;
    const InstrId size = b_.ConstantInt(ElementType::kS32, matrix->dim(d));
    const InstrId start = b_.Convert(e.TileStart(s, matrix, d), ElementType::kS32);
    diagonal_ = WithUnitsBehind(b_, diagonal_, b_.Binary(Opcode::kSubtract, size, start));
  }

  InstrId WithOwnEquations() {
    InstrId right = right_, x;
    for (int64_t turn = 0;; ++turn) {
      const InstrId solved = Solve(right);
      x = x.valid() ? IfTurn(turn, solved, x) : solved;
      if (turn + 1 == turns_.size) return x;
      const InstrId known = ToLaterTurns(ops_.emitter(), solved, turns_, turn);
      right = b_.Binary(Opcode::kSubtract, right, Product(turn, known));
    }
  }

  InstrId WithOwnUnknowns() {
    const InstrId zeros = b_.BroadcastScalar(b_.Zero(b_.type(right_)), b_.shape(right_));
    InstrId x = IfTurn(0, Solve(right_), zeros);
    for (int64_t turn = 1; turn < turns_.size; ++turn) {
      // Those that have no unknowns yet may read anything in the other triangle.
      const InstrId is_after = IsAfter(ops_.emitter(), turns_, turn - 1);
      const InstrId part = Where(b_, is_after, zeros, Product(turn, x));
      const InstrId sum = SumOfEarlierTurns(ops_.emitter(), part, turns_, turn);
      x = IfTurn(turn, Solve(b_.Binary(Opcode::kSubtract, right_, sum)), x);
    }
    return x;
  }

 private:
  // With this device's block of the diagonal, by the op itself.
  InstrId Solve(InstrId right) {
    return EmitOfBlock(ops_, op_, {diagonal_, right}, b_.shape(right)->dims())[0];
  }
  InstrId IfTurn(int64_t turn, InstrId x, InstrId y) {
    return Where(b_, IsTurn(ops_.emitter(), turns_, turn), x, y);
  }
  // What unknowns add to equations, of which those of that turn's shard are the ones and this
  // device's the others.
  InstrId Product(int64_t turn, InstrId unknowns) {
    const int64_t shard = turns_.Shard(turn);
    InstrId a = Rows(b_, matrix_, whole_, shard * block_, (shard + 1) * block_);
    if (form_.conjugated) a = Conjugate(b_, a);
    const int summed = OtherMatrixDim(rank_, EquationDim(form_, rank_));
    return form_.left ? MultiplyMatrices(b_, a, summed, unknowns, rank_ - 2)
                      : MultiplyMatrices(b_, unknowns, rank_ - 1, a, summed);
  }

  OpBuilder& ops_;
  GraphBuilder& b_;
  const LocalOp& op_;
  const Form form_;
  const Turns& turns_;
  const int rank_, whole_;  // the dimension of the matrix that is not sharded
  const int64_t block_;
  InstrId matrix_, right_, diagonal_;
};

LocalIds Emit(OpBuilder& ops, const LocalOp& op) {
  const Sharding& matrix = *op.decision.operands[0];
  const int d = ShardedDim(matrix);
  const Form form = *TriangularSolveFormOf(op.instr);
  const Turns turns = TurnsOf(form, matrix, d);
  LocalSolve solve(ops, op, turns, d);
  const bool own = d == EquationDim(form, matrix.rank());
  return {own ? solve.WithOwnEquations() : solve.WithOwnUnknowns()};
}

LocalIds EmitRightSides(OpBuilder& ops, const LocalOp& op) {
  return StrategyOf(op.instr.opcode).emit(ops, op);
}

}  // namespace

constexpr Strategy kRightSidesStrategy{
    .name = "independent right sides", .rule = RightSidesRule, .emit = EmitRightSides};
constexpr Strategy kSolveByBlocksStrategy{.name = "substitution by blocks",
                                          .rule = Rule,
                                          .crosses = Crosses,
                                          .complete = Complete,
                                          .seconds = Seconds,
                                          .emit = Emit};

}  // namespace internal
}  // namespace shardcall
