// SPDX-License-Identifier: Apache-2.0
// A complex FFT of a sharded line in four steps: the line of N = P Q elements is seen as P rows of
// Q columns, of which a device has some rows. All-to-alls make first the columns whole, then the
// rows, and then bring the result into order, so a device sends 3/n of the line where it would get
// all of it. (Bailey, FFTs in External or Hierarchical Memory, 1990.)
//
// With x[p, q] the element p Q + q, and w(N) = exp(-2 pi i / N), element r + P s of the result is
//   sum over q of  w(N)^(q r) * (sum over p of x[p, q] w(P)^(p r))  * w(Q)^(q s)
#include "shardcall/partitioner/spmd/localize/op_builder.h"
#include "shardcall/partitioner/spmd/plan/strategy.h"
#include "shardcall/partitioner/spmd/strategies/lines/fft_parts.h"
#include "shardcall/partitioner/spmd/strategies/parts/matrices.h"
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

// The line as rows and columns.
LineAsPlane PlaneOf(Context& context, const Shape* in, const Sharding& s) {
  const int64_t line = in->dim(in->rank() - 1);
  const int64_t rows = NumRowsOfLine(line, s.num_shards(in->rank() - 1));
  return AsPlane(context, in->element_type(), in, s, rows, line / rows);
}

bool Complete(const OpQuery& op, Candidate* c) {
  const Shape* in = op.shapes[0];
  const Sharding& s = *c->operands[0];
  const int line = in->rank() - 1;
  if (!s.IsDimSharded(line)) return true;
  if (c->produced[0]->dim(line) != s.dim(line) ||
      NumRowsOfLine(in->dim(line), s.num_shards(line)) == 0) {
    return false;
  }
  Context& context = op.module.context();
  const auto [global, by_rows, by_columns] = PlaneOf(context, in, s);
  c->AddReshard(context, global, by_rows, by_columns);
  c->AddReshard(context, global, by_columns, by_rows);
  c->AddReshard(context, global, by_rows, by_columns);
  return true;
}

LocalIds Emit(OpBuilder& ops, const LocalOp& op) {
  const auto& attrs = op.instr.as<FftAttrs>();
  const Shape* in = op.operand_shapes[0];
  const Sharding& s = *op.decision.operands[0];
  const int line = in->rank() - 1;
  if (!s.IsDimSharded(line)) return ops.Clone(op, op.operands);
  GraphBuilder& b = ops.builder();
  Emitter& emitter = ops.emitter();
  const auto [global, by_rows, by_columns] = PlaneOf(ops.context(), in, s);
  const int64_t rows = global->dim(line), columns = global->dim(line + 1);

  FftAttrs parts = attrs;
  const int64_t lengths[] = {rows, columns};
  parts.length = lengths;
  const Shape* shard = LocalShape(ops.context(), global, by_rows);
  InstrId x = b.Reshape(op.operands[0], shard->dims());
  x = FftOfDims(b, emitter.ReshardInside(x, global, by_rows, by_columns), parts, {line});
  const InstrId start = emitter.TileStart(*by_columns, global, line + 1);
  x = TimesTwiddles(b, x, rows * columns, false, start, attrs.type == FftType::kIfft);
  x = FftOfDims(b, emitter.ReshardInside(x, global, by_columns, by_rows), parts, {line + 1});
  x = emitter.ReshardInside(x, global, by_rows, by_columns);
  // Element [r, s] is element r + P s of the result.
  return {b.Reshape(TransposeMatrices(b, x), b.shape(op.operands[0])->dims())};
}

}  // namespace

constexpr Strategy kFftOfLineStrategy{.name = "FFT of a line in four steps",
                                      .rule = Rule,
                                      .crosses = Crosses,
                                      .complete = Complete,
                                      .emit = Emit};

}  // namespace internal
}  // namespace shardcall
