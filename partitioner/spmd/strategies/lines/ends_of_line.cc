// SPDX-License-Identifier: Apache-2.0
// A sort along a sharded dimension of which only the first or the last rows are read
// (ir/analysis/read_rows.h). Each device sorts its shard, the first or last rows of all shards are
// gathered, and the first or last of these are the result. All of its other rows are zero.
#include <algorithm>
#include <vector>

#include "shardcall/partitioner/spmd/localize/exchange.h"
#include "shardcall/partitioner/spmd/localize/op_builder.h"
#include "shardcall/partitioner/spmd/plan/strategy.h"
#include "shardcall/partitioner/spmd/strategies/lines/line_order.h"
#include "shardcall/partitioner/spmd/strategies/parts/rows.h"
#include "shardcall/sharding/reshard/reshard.h"

namespace shardcall {
inline namespace internal {
namespace {

int LineOf(const Instruction& sort) { return static_cast<int>(sort.as<SortAttrs>().dimension); }

// The line is sharded in the operands, and whole in the results.
bool Rule(const OpQuery& op, ShardingRule* rule) {
  const int d = LineOf(op.instr());
  if (op.places[1] == 0 || !op.operands[0]->IsDimSharded(d)) return false;
  *rule = *op.rule;
  const int line = rule->operands[0].dims[d][0];
  rule->factors[line].kind = FactorKind::kPermutation;
  Factor whole = rule->factors[line];
  whole.kind = FactorKind::kNeedReplication;
  for (TensorFactors& result : rule->results) {
    result.dims[d] = {static_cast<int>(rule->factors.size())};
  }
  rule->factors.push_back(whole);
  return true;
}

bool Crosses(const OpQuery&, int) { return true; }

bool Complete(const OpQuery& op, Candidate* c) {
  const int d = LineOf(op.instr());
  const Sharding& s = *c->operands[0];
  const int64_t shards = s.num_shards(d);
  if (shards == 1) return false;  // any sort
  const int64_t tile = CeilDiv(op.shapes[0]->dim(d), shards);
  const int64_t rows = std::min(op.places[1] - op.places[0], tile);  // that each shard gives
  for (double bytes : BytesOfLine(op, s)) {
    const double given = bytes / static_cast<double>(tile) * static_cast<double>(rows);
    c->AddEmitted(op.module.context(), static_cast<double>(shards - 1) * given, *s.mesh(),
                  s.dim(d));
  }
  return true;
}

// Only a shard is sorted, and little more is written.
double Seconds(const CostModel& cost, const Module& module, const Instruction& instr,
               const Decision& decision) {
  double touched = 0;
  for (size_t k = 0; k < decision.operands.size(); ++k) {
    const Shape* shape = module.instr(module.operands(instr)[k]).shape;
    touched += 2 * static_cast<double>(LocalBytes(shape, *decision.operands[k]));
  }
  return cost.MemorySeconds(touched);
}

// The rows [begin, end) of `x`, at place `at` of a dimension of `size` rows, which are zero beside.
InstrId PlacedRows(GraphBuilder& b, InstrId x, int d, int64_t begin, int64_t end, int64_t at,
                   int64_t size) {
  const Shape* shape = b.shape(x);
  std::vector<int64_t> before(shape->rank(), 0), after = before;
  before[d] = at;
  after[d] = size - at - (end - begin);
  return b.Pad(Rows(b, x, d, begin, end), b.Zero(b.type(x)), before, after);
}

LocalIds Emit(OpBuilder& ops, const LocalOp& op) {
  const int d = LineOf(op.instr);
  const auto axes = op.decision.operands[0]->dim(d);
  const ReadRows read = *ops.RowsRead(op.id);
  const int64_t shards = AxesSize(axes), size = op.operand_shapes[0]->dim(d);
  const int64_t tile = CeilDiv(size, shards), rows = std::min(read.end - read.begin, tile);
  const LineOrder order(ops, op);
  LocalIds line = order.line();
  order.Sort(&line);
  // Padding is last in each shard.
  std::vector<int64_t> from(shards, 0);
  int64_t gathered = 0;  // rows of the array among them
  for (int64_t i = 0; i < shards; ++i) {
    const int64_t own = std::clamp<int64_t>(size - i * tile, 0, tile);
    gathered += std::min(own, rows);
    if (read.begin > 0) from[i] = std::max<int64_t>(0, own - rows);
  }
  for (size_t k = 0; k < line.size(); ++k) {
    ops.emitter().set_cause_index(static_cast<int>(std::min(k, op.operands.size() - 1)));
    const InstrId ends = CutByShard(ops.emitter(), line[k], d, axes, from, rows);
    line[k] = ops.emitter().AllGather(ends, d, axes);
  }
  order.Sort(&line);
  line.resize(op.operands.size());
  const int64_t taken = read.end - read.begin;
  const int64_t first = read.begin > 0 ? gathered - taken : 0;
  for (InstrId& x : line) {
    x = PlacedRows(ops.builder(), x, d, first, first + taken, read.begin, size);
  }
  return line;
}

}  // namespace

constexpr Strategy kEndsOfLineStrategy{.name = "ends of sorted shards",
                                       .rule = Rule,
                                       .crosses = Crosses,
                                       .complete = Complete,
                                       .seconds = Seconds,
                                       .emit = Emit};

}  // namespace internal
}  // namespace shardcall
