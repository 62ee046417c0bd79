// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/spmd/plan/candidate.h"

#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
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

void Candidate::AddEmitted(Context& context, double bytes, const BaseMesh& mesh,
                           absl::Span<const AxisRef> axes, Collective c) {
  Links& links = context.Get<Links>();
  emitted.push_back(links.Over(links.Of(mesh, axes, c), bytes));
}

void Candidate::AddReshard(Context& context, const Shape* global, const Sharding* from,
                           const Sharding* to) {
  if (from == to) return;
  const ReshardPlan& plan = PlanReshard(context, global, from, to);
  emitted.push_back(plan.traffic());
}

namespace {

// What an exchange sends of a shard, as a share of it, and what it leaves of it, or makes of it,
// for those after it.
struct Step {
  Exchange exchange;
  double sent, left;
};

double SentInAll(absl::Span<const Step> steps) {
  double sent = 0, shard = 1;
  for (const Step& s : steps) {
    sent += shard * s.sent;
    shard *= s.left;
  }
  return sent;
}

// The best order of exchanges of one operand. Step a comes before b if a.sent + a.left * b.sent is
// below b.sent + b.left * a.sent, or: first those that make less of the shard, by what they send
// for what they take away, then those that make more of it, by what they send for what they add.
void PutInOrder(absl::Span<Exchange> exchanges) {
  constexpr double kWorthwhile = 0.75;
  std::vector<Step> steps;
  for (const Exchange& e : exchanges) {
    if (e.ranges.tile == 0) return;
    const auto tile = static_cast<double>(e.ranges.tile);
    steps.push_back(
        {e, PlanExchange(e.ranges).sent / tile, static_cast<double>(e.ranges.length) / tile});
  }
  const auto key = [](const Step& s) {
    if (s.left == 1) return std::make_pair(1, 0.0);
    return std::make_pair(s.left < 1 ? 0 : 2, s.sent / (1 - s.left));
  };
  const double given = SentInAll(steps);
  absl::c_stable_sort(steps, [&](const Step& a, const Step& b) { return key(a) < key(b); });
  // Ops that read about the same of a value share its first exchanges, if the order is the same.
  if (SentInAll(steps) > kWorthwhile * given) return;
  for (size_t k = 0; k < steps.size(); ++k) exchanges[k] = steps[k].exchange;
}

}  // namespace

void PutInOrder(Exchanges* exchanges) {
  for (size_t begin = 0, end; begin < exchanges->size(); begin = end) {
    for (end = begin + 1; end < exchanges->size(); ++end) {
      if ((*exchanges)[end].operand != (*exchanges)[begin].operand) break;
    }
    if (end - begin > 1) PutInOrder(absl::MakeSpan(*exchanges).subspan(begin, end - begin));
  }
}

Traffic ExchangeTraffic(Context& context, absl::Span<const Exchange> exchanges,
                        absl::Span<const Shape* const> shapes,
                        absl::Span<const Sharding* const> states) {
  Traffic out;
  // By operand: the bits of the shard, after the exchanges so far. A concatenate has an exchange
  // for each of its operands, so there is one pass over them.
  absl::InlinedVector<double, 4> local(exchanges.empty() ? 0 : shapes.size(), -1);
  for (const Exchange& e : exchanges) {
    if (e.ranges.tile == 0) continue;
    const Sharding& state = *states[e.operand];
    double& shard = local[e.operand];
    if (shard < 0) shard = static_cast<double>(LocalBits(shapes[e.operand], state));
    const ExchangePlan plan = PlanExchange(e.ranges);
    const double row = shard / static_cast<double>(e.ranges.tile);
    const double bytes = SentBytes(plan, e.ranges, row);
    Links& links = context.Get<Links>();
    const Crossing over = links.Of(*state.mesh(), state.dim(e.dim),
                                   plan.gather ? Collective::kAllGather : Collective::kPermute);
    out += links.Over(over, bytes, plan.num_collectives);
    shard = row * static_cast<double>(e.ranges.length);
  }
  return out;
}

void AddEmittedExchange(Context& context, const ShardRanges& ranges, double row_bits,
                        const Sharding& state, int dim, Candidate* candidate) {
  const ExchangePlan plan = PlanExchange(ranges);
  const BaseMesh& mesh = *state.mesh();
  if (plan.gather) {
    candidate->AddEmitted(context, SentBytes(plan, ranges, row_bits), mesh, state.dim(dim));
  }
  for (const RangePart& p : plan.parts) {
    if (p.own || p.pairs.empty()) continue;
    candidate->AddEmitted(context, SentBytes(p, row_bits) / static_cast<double>(ranges.num_shards),
                          mesh, state.dim(dim), Collective::kPermute);
  }
}

}  // namespace internal
}  // namespace shardcall
