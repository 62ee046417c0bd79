// SPDX-License-Identifier: Apache-2.0
// Concatenate along a sharded dimension: each device gets from every operand the range that its
// tile of the result may need, and selects between them. Where operands are slices or pads, what
// these were made of may be exchanged instead: a roll sends its rows once.
#include "shardcall/partitioner/spmd/localize/numbered.h"
#include "shardcall/partitioner/spmd/localize/op_builder.h"
#include "shardcall/partitioner/spmd/plan/strategy.h"
#include "shardcall/partitioner/spmd/strategies/parts/exchanged.h"
#include "shardcall/partitioner/spmd/strategies/parts/read_through.h"

namespace shardcall {
inline namespace internal {
namespace {

int Dim(const Instruction& instr) {
  return static_cast<int>(instr.as<DimensionsAttrs>().dimensions[0]);
}

// What the tiles of the result need of an operand that begins at row `at` of it.
ShardRanges RangesOfOperand(const Shape* operand, const Shape* result, int d, int64_t shards,
                            int64_t at) {
  ShardRanges r = ShardRanges::Of(operand->dim(d), shards);
  r.step = r.length = CeilDiv(result->dim(d), shards);
  r.offset = -at;
  return r;
}

bool Complete(const OpQuery& op, Candidate* c) {
  const int d = Dim(op.instr());
  if (op.shapes.size() == 1 || !c->produced[0]->IsDimSharded(d)) return true;
  const int64_t n = c->produced[0]->num_shards(d);
  int64_t at = 0;
  for (size_t k = 0; k < op.shapes.size(); ++k) {
    const ShardRanges r = RangesOfOperand(op.shapes[k], op.result(0), d, n, at);
    c->exchanges.push_back({static_cast<int>(k), d, r});
    at += op.shapes[k]->dim(d);
  }
  return true;
}

// The tile of the result: each of its elements comes from one of `operands`, whose rows have been
// brought to their places.
InstrId SelectOperand(OpBuilder& ops, const LocalOp& op, int d, const LocalIds& operands) {
  GraphBuilder& b = ops.builder();
  InstrId index;  // in the whole result, of each element of the tile
  {
    Numbered numbered(b);
    const InstrId start = ops.emitter().TileStart(*op.decision.produced[0], op.instr.shape, d);
    const InstrId iota = b.Iota(ElementType::kS32, b.shape(operands[0])->dims(), d);
    index = b.Binary(Opcode::kAdd, iota, b.BroadcastScalar(start, b.shape(iota)));
  }
  InstrId result = operands[0];
  int64_t at = op.operand_shapes[0]->dim(d);
  for (size_t k = 1; k < operands.size(); ++k) {
    const InstrId begin = b.BroadcastScalar(b.ConstantInt(ElementType::kS32, at), b.shape(index));
    result = b.Select(b.Compare(Direction::kLt, index, begin), result, operands[k]);
    at += op.operand_shapes[k]->dim(d);
  }
  return result;
}

LocalIds Emit(OpBuilder& ops, const LocalOp& op) {
  if (op.decision.exchanges.empty()) return ops.Clone(op, op.operands);
  return {SelectOperand(ops, op, Dim(op.instr), op.operands)};
}

bool CompleteThrough(const OpQuery& op, Candidate* c) {
  const int d = Dim(op.instr());
  if (!c->produced[0]->IsDimSharded(d)) return false;
  const int64_t n = c->produced[0]->num_shards(d);
  bool any = false;
  int64_t at = 0;
  for (int k = 0; k < static_cast<int>(op.shapes.size()); ++k) {
    const Shape* operand = op.shapes[k];
    const ShardRanges r = RangesOfOperand(operand, op.result(0), d, n, at);
    if (ReadsAlong(op.sources[k], operand, c->produced[0], d)) {
      any = true;
      AddReadThrough(op.module.context(), op.sources[k], d, RangesOfSource(op.sources[k], d, r), c);
    } else {
      c->exchanges.push_back({k, d, r});
    }
    at += operand->dim(d);
  }
  return any;
}

LocalIds EmitThrough(OpBuilder& ops, const LocalOp& op) {
  const int d = Dim(op.instr);
  const int64_t n = op.decision.produced[0]->num_shards(d);
  LocalIds operands = op.operands;
  int64_t at = 0;
  for (int k = 0; k < static_cast<int>(operands.size()); ++k) {
    const Shape* operand = op.operand_shapes[k];
    const Source& source = op.sources[k].source;
    if (ReadsAlong(source, operand, op.decision.produced[0], d)) {
      const ShardRanges r = RangesOfOperand(operand, op.instr.shape, d, n, at);
      operands[k] = ReadThrough(ops, op.sources[k], d, RangesOfSource(source, d, r));
    }
    at += operand->dim(d);
  }
  return {SelectOperand(ops, op, d, operands)};
}

// Rotations: a concatenation of slices of one value that lie one behind the other in it, from its
// end on again from its beginning, as jnp.roll makes them. The shards pass their rows on in a ring,
// in one message where rows of one neighbour are missing.

// The rows of the value of which all operands are slices. Each shard needs those of its tile of the
// result, `offset` rows further on.
ShardRanges RowsOfRing(const Source& first, int d, int64_t shards) {
  ShardRanges r = ShardRanges::Of(first.shape->dim(d), shards);
  r.step = r.length = r.tile;
  r.offset = first.shift(d);
  r.wraps = true;
  return r;
}

bool CompleteRotation(const OpQuery& op, Candidate* c) {
  const int d = Dim(op.instr());
  const Sharding* result = c->produced[0];
  if (!result->IsDimSharded(d)) return false;
  const int64_t extent = op.result(0)->dim(d);
  const Source& first = op.sources[0];
  // The tiles have to fill the ring.
  if (first.shape == nullptr || first.shape->dim(d) != extent ||
      extent % result->num_shards(d) != 0) {
    return false;
  }
  int64_t at = 0;
  for (size_t k = 0; k < op.shapes.size(); ++k) {
    const Source& source = op.sources[k];
    if (!source.with_first || source.opcode != Opcode::kSlice ||
        !ReadsAlong(source, op.shapes[k], result, d) ||
        source.shift(d) != (first.shift(d) + at) % extent) {
      return false;
    }
    at += op.shapes[k]->dim(d);
  }
  AddReadThrough(op.module.context(), first, d, RowsOfRing(first, d, result->num_shards(d)), c);
  for (size_t k = 1; k < op.sources.size(); ++k) c->d.saved += op.sources[k].saved;
  return true;
}

LocalIds EmitRotation(OpBuilder& ops, const LocalOp& op) {
  const int d = Dim(op.instr);
  const LocalSource& first = op.sources[0];
  const int64_t shards = op.decision.produced[0]->num_shards(d);
  return {ReadThrough(ops, first, d, RowsOfRing(first.source, d, shards))};
}

}  // namespace

constexpr Strategy kConcatenateStrategy{.name = "halo exchange of a concatenation",
                                        .crosses = HasDimInFirst,
                                        .complete = Complete,
                                        .emit = Emit};
constexpr Strategy kConcatenateThroughStrategy{.name = "halo exchange of what is concatenated",
                                               .rule = HasSource,
                                               .crosses = HasDimInFirst,
                                               .complete = CompleteThrough,
                                               .reads_sources = true,
                                               .emit = EmitThrough};
constexpr Strategy kRotateStrategy{.name = "halo exchange of a rotation",
                                   .rule = HasSource,
                                   .crosses = HasDimInFirst,
                                   .complete = CompleteRotation,
                                   .reads_sources = true,
                                   .emit = EmitRotation};

}  // namespace internal
}  // namespace shardcall
