// SPDX-License-Identifier: Apache-2.0
// Concatenate along a sharded dimension: each device gets from every operand the range that its
// tile of the result may need, and selects between them.
#include "shardcall/partitioner/spmd/localize/localizer.h"
#include "shardcall/partitioner/spmd/localize/numbered.h"
#include "shardcall/partitioner/spmd/plan/strategy.h"
#include "shardcall/partitioner/spmd/strategies/exchanged.h"

namespace shardcall::inline internal {
namespace {

int Dim(const Instruction& instr) {
  return static_cast<int>(instr.as<DimensionsAttrs>().dimensions[0]);
}

bool Complete(const OpQuery& op, Candidate* c) {
  const int d = Dim(op.instr());
  if (op.shapes.size() == 1 || !c->produced[0]->IsDimSharded(d)) return true;
  const int64_t n = c->produced[0]->num_shards(d);
  int64_t at = 0;
  for (size_t k = 0; k < op.shapes.size(); ++k) {
    ShardRanges r = ShardRanges::Of(op.shapes[k]->dim(d), n);
    r.step = r.length = CeilDiv(op.result(0)->dim(d), n);
    r.offset = -at;
    c->exchanges.push_back({static_cast<int>(k), d, r});
    at += op.shapes[k]->dim(d);
  }
  return true;
}

LocalIds Emit(Localizer& l, const LocalOp& op) {
  if (op.decision.exchanges.empty()) return l.Clone(op, op.operands);
  GraphBuilder& b = l.builder();
  const int d = Dim(op.instr);
  InstrId index;  // in the whole result, of each element of the tile
  {
    Numbered numbered(b);
    const InstrId start = l.emitter().TileStart(*op.decision.produced[0], op.instr.shape, d);
    const InstrId iota = b.Iota(ElementType::kS32, b.shape(op.operands[0])->dims(), d);
    index = b.Binary(Opcode::kAdd, iota, b.BroadcastScalar(start, b.shape(iota)));
  }
  InstrId result = op.operands[0];
  int64_t at = op.operand_shapes[0]->dim(d);
  for (size_t k = 1; k < op.operands.size(); ++k) {
    const InstrId begin = b.BroadcastScalar(b.ConstantInt(ElementType::kS32, at), b.shape(index));
    result = b.Select(b.Compare(Direction::kLt, index, begin), result, op.operands[k]);
    at += op.operand_shapes[k]->dim(d);
  }
  return {result};
}

}  // namespace

constexpr Strategy kConcatenateStrategy{.name = "halo exchange of a concatenation",
                                        .crosses = HasDimInFirst,
                                        .complete = Complete,
                                        .emit = Emit};

}  // namespace shardcall::inline internal
