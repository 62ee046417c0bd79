// SPDX-License-Identifier: Apache-2.0
// A complex FFT of a sharded line in four steps: the line of N = P Q elements is seen as P rows of
// Q columns, of which a device has some rows. All-to-alls make first the columns whole, then the
// rows, and then bring the result into order, so a device sends 3/n of the line where it would get
// all of it. (Bailey, FFTs in External or Hierarchical Memory, 1990.)
//
// With x[p, q] the element p Q + q, and w(N) = exp(-2 pi i / N), element r + P s of the result is
//   sum over q of  w(N)^(q r) * (sum over p of x[p, q] w(P)^(p r))  * w(Q)^(q s)
#include <cmath>
#include <numbers>
#include <utility>
#include <vector>

#include "shardcall/partitioner/spmd/localize/op_builder.h"
#include "shardcall/partitioner/spmd/plan/strategy.h"
#include "shardcall/partitioner/spmd/strategies/lines/fft_parts.h"
#include "shardcall/sharding/reshard/reshard.h"

namespace shardcall {
inline namespace internal {
namespace {

bool Rule(const OpQuery& op, ShardingRule* rule) {
  const auto& attrs = op.instr().as<FftAttrs>();
  const Shape* in = op.shapes[0];
  const bool complex = attrs.type == FftType::kFft || attrs.type == FftType::kIfft;
  if (!complex || attrs.length.size() != 1 || in->num_elements() == 0) return false;
  const int line = in->rank() - 1;
  if (!op.operands[0]->IsDimSharded(line) && !op.wanted[0]->IsDimSharded(line)) return false;
  *rule = *op.rule;
  rule->factors[rule->operands[0].dims[line][0]].kind = FactorKind::kPermutation;
  return true;
}

bool Crosses(const OpQuery&, int) { return true; }

// P, a multiple of the number of shards as is Q, and near to it; 0 if the line has no such rows and
// columns.
int64_t NumRows(int64_t line, int64_t shards) {
  if (line % (shards * shards) != 0) return 0;
  const int64_t rest = line / (shards * shards);
  int64_t rows = static_cast<int64_t>(std::sqrt(static_cast<double>(rest)));
  while (rest % rows != 0) --rows;
  return rows * shards;
}

// The states of the line as rows and columns: with its axes on the rows, and on the columns.
struct States {
  const Shape* global;
  const Sharding *by_rows, *by_columns;
};
States StatesOf(Context& context, const Shape* in, const Sharding& s) {
  const int line = in->rank() - 1;
  const int64_t rows = NumRows(in->dim(line), s.num_shards(line));
  std::vector<int64_t> dims(in->dims().begin(), in->dims().end());
  dims.back() = rows;
  dims.push_back(in->dim(line) / rows);
  ShardingBuilder by_rows(s.mesh(), line + 2), by_columns(s.mesh(), line + 2);
  by_rows.manual = by_columns.manual = AxisList(s.manual().begin(), s.manual().end());
  for (int d = 0; d < line; ++d) {
    by_rows.dims[d] = by_columns.dims[d] = AxisList(s.dim(d).begin(), s.dim(d).end());
  }
  by_rows.dims[line] = by_columns.dims[line + 1] = AxisList(s.dim(line).begin(), s.dim(line).end());
  return {context.MakeArray(in->element_type(), dims), by_rows.Intern(context),
          by_columns.Intern(context)};
}

bool Complete(const OpQuery& op, Candidate* c) {
  const Shape* in = op.shapes[0];
  const Sharding& s = *c->operands[0];
  const int line = in->rank() - 1;
  if (!s.IsDimSharded(line)) return true;
  if (c->produced[0]->dim(line) != s.dim(line) || NumRows(in->dim(line), s.num_shards(line)) == 0) {
    return false;
  }
  Context& context = op.module.context();
  const auto [global, by_rows, by_columns] = StatesOf(context, in, s);
  c->AddReshard(context, global, by_rows, by_columns);
  c->AddReshard(context, global, by_columns, by_rows);
  c->AddReshard(context, global, by_rows, by_columns);
  return true;
}

// w(n)^(row column) for each element of x, a shard of rows and columns, of which the columns start
// at `start`. The angle is exact: the exponent is a whole number below n.
InstrId Twiddles(GraphBuilder& b, InstrId x, int64_t n, InstrId start, bool inverse) {
  const Shape* shape = b.shape(x);
  const int rank = shape->rank();
  const int64_t dims[] = {shape->dim(rank - 2), shape->dim(rank - 1)};
  const InstrId columns = b.Iota(ElementType::kS64, dims, 1);
  const InstrId column =
      b.Binary(Opcode::kAdd, columns,
               b.BroadcastScalar(b.Convert(start, ElementType::kS64), b.shape(columns)));
  const InstrId power = b.Binary(Opcode::kMultiply, b.Iota(ElementType::kS64, dims, 0), column);
  const double turn = (inverse ? 2 : -2) * std::numbers::pi / static_cast<double>(n);
  const InstrId angle =
      b.Binary(Opcode::kMultiply, b.Convert(power, ElementType::kF64),
               b.BroadcastScalar(b.ConstantDouble(ElementType::kF64, turn), b.shape(power)));
  const ElementType part =
      shape->element_type() == ElementType::kC128 ? ElementType::kF64 : ElementType::kF32;
  const InstrId factor =
      b.Binary(Opcode::kComplex, b.Convert(b.Unary(Opcode::kCosine, angle), part),
               b.Convert(b.Unary(Opcode::kSine, angle), part));
  return b.Broadcast(factor, shape->dims(), {rank - 2, rank - 1});
}

LocalIds Emit(OpBuilder& ops, const LocalOp& op) {
  const auto& attrs = op.instr.as<FftAttrs>();
  const Shape* in = op.operand_shapes[0];
  const Sharding& s = *op.decision.operands[0];
  const int line = in->rank() - 1;
  if (!s.IsDimSharded(line)) return ops.Clone(op, op.operands);
  GraphBuilder& b = ops.builder();
  Emitter& emitter = ops.emitter();
  const auto [global, by_rows, by_columns] = StatesOf(ops.context(), in, s);
  const int64_t rows = global->dim(line), columns = global->dim(line + 1);

  FftAttrs parts = attrs;
  const int64_t lengths[] = {rows, columns};
  parts.length = lengths;
  const Shape* shard = LocalShape(ops.context(), global, by_rows);
  InstrId x = b.Reshape(op.operands[0], shard->dims());
  x = FftOfDims(b, emitter.ReshardInside(x, global, by_rows, by_columns), parts, {line});
  const InstrId start = emitter.TileStart(*by_columns, global, line + 1);
  const InstrId twiddles = Twiddles(b, x, rows * columns, start, attrs.type == FftType::kIfft);
  x = b.Binary(Opcode::kMultiply, x, twiddles);
  x = FftOfDims(b, emitter.ReshardInside(x, global, by_columns, by_rows), parts, {line + 1});
  x = emitter.ReshardInside(x, global, by_rows, by_columns);
  // Element [r, s] is element r + P s of the result.
  std::vector<int64_t> swapped(line + 2);
  for (int d = 0; d < line + 2; ++d) swapped[d] = d;
  std::swap(swapped[line], swapped[line + 1]);
  return {b.Reshape(b.Transpose(x, swapped), b.shape(op.operands[0])->dims())};
}

}  // namespace

constexpr Strategy kFftOfLineStrategy{.name = "FFT of a line in four steps",
                                      .rule = Rule,
                                      .crosses = Crosses,
                                      .complete = Complete,
                                      .emit = Emit};

}  // namespace internal
}  // namespace shardcall
