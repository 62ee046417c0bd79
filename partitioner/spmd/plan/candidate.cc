// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/spmd/plan/candidate.h"

#include <utility>

#include "shardcall/partitioner/ir/monoid.h"
#include "shardcall/sharding/reshard/reshard.h"

namespace shardcall {
inline namespace internal {

bool AccumulatedResult::MayWait(const Shape* shape, const Sharding& made) const {
  return share < 1 && !made.partial().empty() && made.partial_op() == PartialOp::kSum &&
         LocalBytes(shape, made) <= held_bytes + more_bytes;
}

int DimOfFactor(const ShardingRule& rule, int t, int f) {
  const TensorFactors& tensor = rule.tensor(t);
  for (size_t d = 0; d < tensor.dims.size(); ++d) {
    if (tensor.dims[d].size() == 1 && tensor.dims[d][0] == f) return static_cast<int>(d);
  }
  return -1;
}

bool SumOverDim(const OpQuery& op, int t, int d, int out, int out_dim, ShardingRule* rule) {
  const FactorList& dims = rule->operands[t].dims[d];
  if (dims.size() != 1 || !HasIdentity(PartialOp::kSum, op.shapes[t]->element_type())) return false;
  const int f = dims[0];
  Factor& factor = rule->factors[f];
  if (factor.kind == FactorKind::kNeedReplication) return false;
  Factor whole = factor;
  whole.size = op.result(out)->dim(out_dim);
  whole.kind = FactorKind::kNeedReplication;
  factor.kind = FactorKind::kReduction;
  factor.reduction = PartialOp::kSum;
  factor.size = op.shapes[t]->dim(d);
  std::erase_if(rule->extents, [&](const auto& e) { return e.first.second == f; });
  rule->results[out].dims[out_dim] = {static_cast<int>(rule->factors.size())};
  rule->factors.push_back(std::move(whole));
  return true;
}

double ExchangeBytes(absl::Span<const Exchange> exchanges, absl::Span<const Shape* const> shapes,
                     absl::Span<const Sharding* const> states, int* collectives) {
  double bytes = 0;
  // By operand: the bytes of the shard, after the exchanges so far. A concatenate has an exchange
  // for each of its operands, so there is one pass over them.
  absl::InlinedVector<double, 4> local(exchanges.empty() ? 0 : shapes.size(), -1);
  for (const Exchange& e : exchanges) {
    if (e.ranges.tile == 0) continue;
    double& shard = local[e.operand];
    if (shard < 0) shard = LocalBytes(shapes[e.operand], *states[e.operand]);
    const ExchangePlan plan = PlanExchange(e.ranges);
    const double row = shard / static_cast<double>(e.ranges.tile);
    bytes += row * plan.sent;
    *collectives += plan.num_collectives;
    shard = row * static_cast<double>(e.ranges.length);
  }
  return bytes;
}

void AddEmittedExchange(const ShardRanges& ranges, double row, Candidate* candidate) {
  const ExchangePlan plan = PlanExchange(ranges);
  if (plan.gather) candidate->emitted.push_back(row * plan.sent);
  for (const RangePart& p : plan.parts) {
    if (p.own || p.pairs.empty()) continue;
    const double sent = static_cast<double>(p.size) * static_cast<double>(p.pairs.size());
    candidate->emitted.push_back(row * sent / static_cast<double>(ranges.num_shards));
  }
}

}  // namespace internal
}  // namespace shardcall
