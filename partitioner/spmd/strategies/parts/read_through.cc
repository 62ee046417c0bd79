// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/spmd/strategies/parts/read_through.h"

#include <algorithm>

#include "shardcall/partitioner/spmd/localize/exchange.h"
#include "shardcall/sharding/reshard/reshard.h"

namespace shardcall {
inline namespace internal {
namespace {

bool IsWholeAlong(const Source& source, const Shape* operand, int d) {
  return source.shift(d) == 0 && source.shape->dim(d) == operand->dim(d);
}

}  // namespace

bool HasSource(const OpQuery& op, ShardingRule* rule) {
  if (op.sources.empty() || op.result(0)->num_elements() == 0) return false;
  *rule = *op.rule;
  return true;
}

bool ReadsAlong(const Source& source, const Shape* operand, const Sharding* result, int d) {
  if (source.shape == nullptr || source.state != result || result->is_maximal() ||
      !result->partial().empty() || !result->IsDimSharded(d) || operand->IsDynamic() ||
      source.shape->IsDynamic() || operand->num_elements() == 0 ||
      source.shape->num_elements() == 0) {
    return false;
  }
  for (int e = 0; e < operand->rank(); ++e) {
    if (e != d && !IsWholeAlong(source, operand, e)) return false;
  }
  return true;
}

int DimReadAlong(const Source& source, const Shape* operand, const Sharding* result,
                 absl::FunctionRef<bool(int)> changes) {
  if (source.shape == nullptr) return -1;
  int found = -1;
  for (int d = 0; d < operand->rank(); ++d) {
    if (!result->IsDimSharded(d) || (!changes(d) && IsWholeAlong(source, operand, d))) continue;
    if (found >= 0) return -1;
    found = d;
  }
  return found >= 0 && ReadsAlong(source, operand, result, found) ? found : -1;
}

ShardRanges RangesOfSource(const Source& source, int d, const ShardRanges& of_operand) {
  ShardRanges r = ShardRanges::Of(source.shape->dim(d), of_operand.num_shards);
  const int64_t shift = source.shift(d);
  r.step = of_operand.step;
  r.offset = of_operand.offset + shift;
  r.length = of_operand.length;
  r.begin = std::clamp<int64_t>(of_operand.begin + shift, 0, r.extent);
  r.end = std::clamp(of_operand.end + shift, r.begin, r.extent);
  return r;
}

void AddReadThrough(Context& context, const Source& source, int d, const ShardRanges& ranges,
                    Candidate* c) {
  const double shard = static_cast<double>(LocalBits(source.shape, *source.state));
  AddEmittedExchange(context, ranges, shard / static_cast<double>(ranges.tile), *source.state, d,
                     c);
  c->d.saved += source.saved;
}

InstrId ReadThrough(OpBuilder& ops, const LocalSource& from, int d, const ShardRanges& ranges) {
  const absl::Span<const AxisRef> axes = from.source.state->dim(d);
  const InstrId rows = EmitExchange(ops.emitter(), from.value, d, axes, ranges);
  if (from.source.opcode != Opcode::kPad) return rows;
  return FillOutside(ops.emitter(), rows, d, axes, ranges, from.fill);
}

}  // namespace internal
}  // namespace shardcall
