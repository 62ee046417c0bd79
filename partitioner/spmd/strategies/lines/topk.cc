// SPDX-License-Identifier: Apache-2.0
// Top-k of lines that are sharded (ir/build/top_k_of_shards.h).
#include <algorithm>
#include <optional>
#include <vector>

#include "shardcall/partitioner/ir/build/top_k_of_shards.h"
#include "shardcall/partitioner/spmd/localize/op_builder.h"
#include "shardcall/partitioner/spmd/plan/strategy.h"
#include "shardcall/sharding/reshard/reshard.h"

namespace shardcall {
inline namespace internal {
namespace {

bool IsLine(const ShardingRule& rule, int f) {
  return rule.factors[f].kind == FactorKind::kPermutation;
}

bool Crosses(const OpQuery& op, int f) {
  return IsLine(*op.rule, f) && op.instr().as<TopKAttrs>().k > 0;
}

bool Complete(const OpQuery& op, Candidate* c) {
  const int line = op.shapes[0]->rank() - 1;
  const Sharding& s = *c->operands[0];
  const int64_t n = s.num_shards(line), k = op.instr().as<TopKAttrs>().k;
  if (n == 1) return true;
  const int64_t best = std::min(k, CeilDiv(op.shapes[0]->dim(line), n));
  for (int r = 0; r < 2; ++r) {
    const int64_t part = CeilDiv(LocalBytes(op.result(r), *c->produced[r]) * best, k);
    c->AddEmitted(op.module.context(), static_cast<double>((n - 1) * part), *s.mesh(), s.dim(line));
  }
  return true;
}

// values[.., places[.., i]] for each i.
InstrId TakeAlongLine(GraphBuilder& b, InstrId values, InstrId places) {
  const int64_t rank = b.shape(values)->rank();
  std::vector<int64_t> lines, ones(rank, 1);
  for (int64_t d = 0; d + 1 < rank; ++d) lines.push_back(d);
  const int64_t line[] = {rank - 1};
  GatherAttrs attrs;
  attrs.collapsed_slice_dims = line;
  attrs.start_index_map = line;
  attrs.operand_batching_dims = lines;
  attrs.start_indices_batching_dims = lines;
  attrs.index_vector_dim = rank;
  attrs.slice_sizes = ones;
  return b.Add(Opcode::kGather, {values, places}, InternAttributes(b.context(), attrs));
}

LocalIds Emit(OpBuilder& ops, const LocalOp& op) {
  const Shape* global = op.operand_shapes[0];
  const Sharding& s = *op.decision.operands[0];
  const int line = global->rank() - 1;
  if (line < 0 || !s.IsDimSharded(line)) return ops.Clone(op, op.operands);
  GraphBuilder& b = ops.builder();
  const auto& attrs = op.instr.as<TopKAttrs>();

  const auto best = [&](InstrId x, std::optional<InstrId> labels) -> absl::StatusOr<TopK> {
    TopKAttrs local = attrs;
    local.k = std::min(attrs.k, b.shape(x)->dim(line));
    const InstrId both = b.Add(Opcode::kTopk, {x}, InternAttributes(b.context(), local));
    const InstrId places = b.GetTupleElement(both, 1);
    return TopK{b.GetTupleElement(both, 0), labels ? TakeAlongLine(b, *labels, places) : places};
  };
  const auto global_places = [&](InstrId places) -> absl::StatusOr<InstrId> {
    const InstrId start = ops.emitter().TileStart(s, global, line);
    return b.Binary(Opcode::kAdd, places, b.BroadcastScalar(start, b.shape(places)));
  };
  const auto gather = [&](InstrId part) -> absl::StatusOr<InstrId> {
    return ops.emitter().AllGather(part, line, s.dim(line));
  };

  const ElementType type = b.type(op.operands[0]);
  const InstrId last = b.ConstantBits(type, LastOfAllBits(type, attrs.largest));
  const InstrId x = ops.emitter().MaskPadding(op.operands[0], global, s, {line}, last);
  const absl::StatusOr<TopK> result = TopKOfShards(x, std::nullopt, {best, global_places, gather});
  SHARDCALL_CHECK(result.ok());  // none of the parts fails
  return {(*result)[0], (*result)[1]};
}

}  // namespace

constexpr Strategy kTopKStrategy{
    .name = "best of the shards' best", .crosses = Crosses, .complete = Complete, .emit = Emit};

}  // namespace internal
}  // namespace shardcall
