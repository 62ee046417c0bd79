// SPDX-License-Identifier: Apache-2.0
// Reshape of a sharded dimension that it splits, merges or regroups, where the shards of the result
// hold other elements than those of the operand. Both are shards of the same row of elements, so
// each device flattens the dimensions, gets the elements that its shard of the result has, and
// gives these their dimensions.
//
// Example: f32[24] on 4 shards becomes f32[3,8]. Shards of 6 elements become shards of a row of 8,
// so shard 0 gets elements 6 and 7 from shard 1; shard 3 has no row.
#include <algorithm>
#include <utility>
#include <vector>

#include "shardcall/partitioner/spmd/localize/exchange.h"
#include "shardcall/partitioner/spmd/localize/op_builder.h"
#include "shardcall/partitioner/spmd/plan/strategy.h"
#include "shardcall/sharding/reshard/reshard.h"

namespace shardcall {
inline namespace internal {
namespace {

// Dimensions [begin, end) of a shape, of which all but `major` are whole; that is the first one
// that is longer than 1, or the last.
struct DimRange {
  int begin, end, major;
  int64_t minor_size;  // elements of a row of the major one
};
// Dimensions of the operand and of the result that have the same elements.
struct DimGroup {
  DimRange in, out;
  bool IsOneDim() const { return in.end - in.begin == 1 && out.end - out.begin == 1; }
};

DimRange RangeOf(const Shape* shape, int begin, int end) {
  DimRange r{begin, end, begin, 1};
  while (r.major + 1 < end && shape->dim(r.major) == 1) ++r.major;
  for (int d = r.major + 1; d < end; ++d) r.minor_size *= shape->dim(d);
  return r;
}

// The smallest groups, in order. The shapes have equally many elements, at least one.
absl::InlinedVector<DimGroup, 4> GroupsOf(const Shape* in, const Shape* out) {
  absl::InlinedVector<DimGroup, 4> groups;
  int i = 0, j = 0;
  while (i < in->rank() || j < out->rank()) {
    const int begin_in = i, begin_out = j;
    int64_t a = i < in->rank() ? in->dim(i++) : 1, b = j < out->rank() ? out->dim(j++) : 1;
    while (a != b) (a < b ? a : b) *= a < b ? in->dim(i++) : out->dim(j++);
    groups.push_back({RangeOf(in, begin_in, i), RangeOf(out, begin_out, j)});
  }
  return groups;
}

void KeepWhole(const Shape* shape, const DimRange& range, TensorFactors* tensor,
               ShardingRule* rule) {
  for (int d = range.begin; d < range.end; ++d) {
    if (d == range.major) continue;
    tensor->dims[d] = {static_cast<int>(rule->factors.size())};
    rule->factors.push_back({.size = shape->dim(d), .kind = FactorKind::kNeedReplication});
  }
}

// The major dimensions of a group are one factor, across whose shards data moves.
bool Rule(const OpQuery& op, ShardingRule* rule) {
  const Shape *in = op.shapes[0], *out = op.result(0);
  if (in->num_elements() == 0 || in->IsDynamic() || out->IsDynamic()) return false;
  if (!op.operands[0]->HasShardedDim() && !op.wanted[0]->HasShardedDim()) return false;
  rule->operands.resize(1);
  rule->results.resize(1);
  rule->operands[0].dims.resize(in->rank());
  rule->results[0].dims.resize(out->rank());
  bool any = false;
  for (const DimGroup& g : GroupsOf(in, out)) {
    if (g.in.begin == g.in.end || g.out.begin == g.out.end) continue;  // of size 1
    const int f = static_cast<int>(rule->factors.size());
    rule->factors.push_back({.size = in->dim(g.in.major)});
    rule->operands[0].dims[g.in.major] = rule->results[0].dims[g.out.major] = {f};
    if (g.IsOneDim()) continue;
    any = true;
    rule->factors[f].kind = FactorKind::kPermutation;
    if (out->dim(g.out.major) != in->dim(g.in.major)) {
      rule->extents.push_back({{1, f}, out->dim(g.out.major)});
    }
    KeepWhole(in, g.in, &rule->operands[0], rule);
    KeepWhole(out, g.out, &rule->results[0], rule);
  }
  return any;
}

bool Crosses(const OpQuery&, int) { return true; }

// The elements of a group that each shard needs, as one dimension.
ShardRanges ElementsOf(const DimGroup& g, const Shape* in, const Shape* out, int64_t shards) {
  const int64_t row = in->dim(g.in.major) * g.in.minor_size;
  ShardRanges r = ShardRanges::Of(row, shards);
  r.tile = CeilDiv(in->dim(g.in.major), shards) * g.in.minor_size;
  r.step = r.length = CeilDiv(out->dim(g.out.major), shards) * g.out.minor_size;
  return r;
}

bool Complete(const OpQuery& op, Candidate* c) {
  const Shape *in = op.shapes[0], *out = op.result(0);
  const Sharding& s = *c->operands[0];
  double bits = static_cast<double>(LocalBits(in, s));
  for (const DimGroup& g : GroupsOf(in, out)) {
    if (g.IsOneDim() || g.in.begin == g.in.end || !s.IsDimSharded(g.in.major)) continue;
    const ShardRanges r = ElementsOf(g, in, out, s.num_shards(g.in.major));
    const double element = bits / static_cast<double>(r.tile);
    AddEmittedExchange(op.module.context(), r, element, s, g.in.major, c);
    bits = element * static_cast<double>(r.length);
  }
  return true;
}

LocalIds Emit(OpBuilder& ops, const LocalOp& op) {
  GraphBuilder& b = ops.builder();
  const Shape *in = op.operand_shapes[0], *out = op.instr.shape;
  const Sharding& s = *op.decision.operands[0];
  const auto groups = GroupsOf(in, out);
  absl::InlinedVector<int64_t, 8> flat;  // by group
  for (const DimGroup& g : groups) {
    flat.push_back(1);
    for (int d = g.in.begin; d < g.in.end; ++d) flat.back() *= b.shape(op.operands[0])->dim(d);
  }
  InstrId x = b.Reshape(op.operands[0], flat);
  for (int k = 0; k < static_cast<int>(groups.size()); ++k) {
    const DimGroup& g = groups[k];
    if (g.IsOneDim() || g.in.begin == g.in.end || !s.IsDimSharded(g.in.major)) continue;
    x = EmitExchange(ops.emitter(), x, k, s.dim(g.in.major),
                     ElementsOf(g, in, out, s.num_shards(g.in.major)));
  }
  return ops.Clone(op, {x});
}

}  // namespace

constexpr Strategy kReshapeExchangeStrategy{.name = "halo exchange of a reshape",
                                            .rule = Rule,
                                            .crosses = Crosses,
                                            .complete = Complete,
                                            .emit = Emit};

}  // namespace internal
}  // namespace shardcall
