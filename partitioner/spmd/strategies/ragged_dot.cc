// SPDX-License-Identifier: Apache-2.0
// ragged-dot on shards of its ragged dimension and of its groups. A device multiplies what it has
// of each group: the sizes tell where groups begin and end, so that a shard of rows sends nothing.
// One that has some groups computes the rows of these, and zero for all others, so that the results
// of the shards add up.
#include <algorithm>
#include <limits>
#include <vector>

#include "shardcall/partitioner/spmd/localize/op_builder.h"
#include "shardcall/partitioner/spmd/plan/strategy.h"
#include "shardcall/partitioner/spmd/strategies/parts/products.h"

namespace shardcall {
inline namespace internal {
namespace {

// What the lists of group sizes say, in one integer type, along their last dimension.
struct Groups {
  InstrId begins, ends;  // within the ragged dimension
};

InstrId ClampTo(GraphBuilder& b, InstrId x, InstrId low, InstrId high) {
  return b.Clamp(b.BroadcastScalar(low, b.shape(x)), x, b.BroadcastScalar(high, b.shape(x)));
}

// A size below zero counts as zero, and groups end where the dimension, of `extent`, does.
Groups GroupsOf(GraphBuilder& b, InstrId sizes, int64_t extent) {
  const Shape* shape = b.shape(sizes);
  const int last = shape->rank() - 1;
  const int64_t count = shape->dim(last);
  const bool narrow = b.type(sizes) == ElementType::kS32 &&
                      extent < std::numeric_limits<int32_t>::max() / std::max<int64_t>(count, 1);
  const ElementType type = narrow ? ElementType::kS32 : ElementType::kS64;
  const InstrId zero = b.Zero(type), end = b.ConstantInt(type, extent);
  sizes = ClampTo(b, b.Convert(sizes, type), zero, end);
  // before[.., g, h]: the size of group h, if it is before g.
  std::vector<int64_t> dims(shape->dims().begin(), shape->dims().end()), from;
  dims.push_back(count);
  for (int d = 0; d < last; ++d) from.push_back(d);
  from.push_back(last + 1);
  const InstrId spread = b.Broadcast(sizes, dims, from);
  const InstrId before = b.Compare(Direction::kLt, b.Iota(ElementType::kS32, dims, last + 1),
                                   b.Iota(ElementType::kS32, dims, last));
  const InstrId counted = b.Select(before, spread, b.BroadcastScalar(zero, b.shape(spread)));
  const InstrId begins = b.Reduce(counted, zero, {last + 1}, Opcode::kAdd);
  return {ClampTo(b, begins, zero, end),
          ClampTo(b, b.Binary(Opcode::kAdd, begins, sizes), zero, end)};
}

// The groups within the `tile` places from `start` on, seen from there.
Groups Within(GraphBuilder& b, const Groups& groups, InstrId start, int64_t tile) {
  const ElementType type = b.type(groups.begins);
  const auto local = [&](InstrId x) {
    const InstrId from = b.BroadcastScalar(b.Convert(start, type), b.shape(x));
    return ClampTo(b, b.Binary(Opcode::kSubtract, x, from), b.Zero(type),
                   b.ConstantInt(type, tile));
  };
  return {local(groups.begins), local(groups.ends)};
}

// `count` groups from number `first` on, and before them one that ends where the first of them
// begins. `count` divides the groups, or those beyond the last one are empty.
Groups From(GraphBuilder& b, const Groups& groups, InstrId first, int64_t count, int64_t total) {
  const int last = b.shape(groups.begins)->rank() - 1;
  const InstrId zero = b.Zero(b.type(groups.begins));
  const auto take = [&](InstrId x) {
    std::vector<int64_t> low(last + 1, 0), high(last + 1, 0);
    const int64_t size = b.shape(x)->dim(last);
    high[last] = total - size;
    if (high[last] > 0) x = b.Pad(x, zero, low, high);
    std::vector<int64_t> sizes(b.shape(x)->dims().begin(), b.shape(x)->dims().end());
    sizes[last] = count;
    std::vector<InstrId> starts(last + 1, b.Zero(ElementType::kS32));
    starts[last] = first;
    return b.DynamicSlice(x, starts, sizes);
  };
  const InstrId begins = take(groups.begins), ends = take(groups.ends);
  std::vector<int64_t> low(last + 1, 0),
      high(b.shape(begins)->dims().begin(), b.shape(begins)->dims().end());
  high[last] = 1;
  const InstrId head = b.Slice(begins, low, high);
  return {b.Concatenate({b.BroadcastScalar(zero, b.shape(head)), begins}, last),
          b.Concatenate({head, ends}, last)};
}

// x, a shard of the lhs, with zeros in place of the rows of the first group.
InstrId WithoutRowsBefore(GraphBuilder& b, const LocalOp& op, InstrId x, const Groups& groups) {
  const int ragged = static_cast<int>(op.instr.as<DotAttrs>().lhs_ragged[0]);
  const Shape* lists = b.shape(groups.ends);
  // The dimensions of the lhs for whose places there are lists.
  std::vector<int64_t> lhs_dims, low(lists->rank(), 0), high;
  for (int d = 0; d + 1 < lists->rank(); ++d) {
    lhs_dims.push_back(DimOfFactor(*op.decision.rule, 0, op.decision.rule->operands[2].dims[d][0]));
  }
  high.assign(lists->dims().begin(), lists->dims().end());
  high.back() = 1;
  const InstrId end =
      b.Reshape(b.Slice(groups.ends, low, high), lists->dims().first(lists->rank() - 1));
  const InstrId row = b.Iota(b.type(end), b.shape(x)->dims(), ragged);
  const InstrId before =
      b.Compare(Direction::kLt, row, b.Broadcast(end, b.shape(x)->dims(), lhs_dims));
  return b.Select(before, b.BroadcastScalar(b.Zero(b.type(x)), b.shape(x)), x);
}

LocalIds Emit(OpBuilder& ops, const LocalOp& op) {
  const auto& attrs = op.instr.as<DotAttrs>();
  LocalIds operands = op.operands;
  MaskContracted(ops, op, &operands);
  const int ragged = static_cast<int>(attrs.lhs_ragged[0]);
  const int group = attrs.rhs_group.empty() ? -1 : static_cast<int>(attrs.rhs_group[0]);
  const Sharding &lhs = *op.decision.operands[0], &rhs = *op.decision.operands[1];
  const bool by_rows = lhs.IsDimSharded(ragged), by_group = group >= 0 && rhs.IsDimSharded(group);
  if (!by_rows && !by_group) return ops.Clone(op, operands);

  GraphBuilder& b = ops.builder();
  Groups groups = GroupsOf(b, operands[2], op.operand_shapes[0]->dim(ragged));
  if (by_rows) {
    const InstrId start = ops.emitter().TileStart(lhs, op.operand_shapes[0], ragged);
    groups = Within(b, groups, start, b.shape(operands[0])->dim(ragged));
  }
  if (by_group) {
    const int64_t mine = b.shape(operands[1])->dim(group);
    const InstrId first = ops.emitter().TileStart(rhs, op.operand_shapes[1], group);
    groups = From(b, groups, first, mine, mine * rhs.num_shards(group));
    // What the rows before the first group, set to zero, are multiplied with.
    operands[0] = WithoutRowsBefore(b, op, operands[0], groups);
    std::vector<int64_t> low(rhs.rank(), 0), high(rhs.rank(), 0);
    low[group] = 1;
    operands[1] = b.Pad(operands[1], b.Zero(b.type(operands[1])), low, high);
  }
  operands[2] =
      b.Convert(b.Binary(Opcode::kSubtract, groups.ends, groups.begins), b.type(op.operands[2]));
  return ops.Clone(op, operands);
}

}  // namespace

constexpr Strategy kRaggedDotStrategy{.name = "ragged product by sizes of the shard", .emit = Emit};

}  // namespace internal
}  // namespace shardcall
