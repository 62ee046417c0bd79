// SPDX-License-Identifier: Apache-2.0
// Ops with a factor rule: candidates are the factor shardings that the operands
// have, that the result wants, and their compatible unions; the cheapest by the
// cost model wins, the first among equals.
#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "partitioner/spmd/handler_traits.h"
#include "partitioner/spmd/planner.h"

namespace shardcall {
namespace {

// True if the factor has one extent in every tensor that holds it.
bool OneExtent(const ShardingRule& rule, int factor) {
  for (const auto& [key, extent] : rule.extents) {
    if (key.second == factor && extent != rule.factors[factor].size) return false;
  }
  return true;
}

double Bytes(const Shape* shape) { return static_cast<double>(shape->byte_size()); }

// The order in which tensors are projected onto the factors.
using Order = absl::InlinedVector<int, 8>;

}  // namespace

uint64_t Planner::AllowedFactors(const Instruction& instr, const ShardingRule& rule) const {
  uint64_t allowed = 0;
  const int n = std::min<int>(64, static_cast<int>(rule.factors.size()));
  for (int f = 0; f < n; ++f) {
    const Factor& factor = rule.factors[f];
    bool ok = false;
    switch (factor.kind) {
      case FactorKind::kPassThrough:
        ok = OneExtent(rule, f) || HandlesPermutation(module_, instr, rule, f);
        break;
      case FactorKind::kReduction: ok = OneExtent(rule, f); break;
      case FactorKind::kPermutation: ok = HandlesPermutation(module_, instr, rule, f); break;
      case FactorKind::kNeedReplication: break;
    }
    if (ok) allowed |= uint64_t{1} << f;
  }
  return allowed;
}

double Planner::LocalSeconds(const Instruction& instr,
                             const std::vector<const Shape*>& operand_shapes,
                             const Decision& d) const {
  double shards = 1;
  for (const AxisList& a : d.factor_axes) shards *= static_cast<double>(AxesSize(a));
  if (instr.opcode == Opcode::kDot || instr.opcode == Opcode::kConvolution) {
    double flops = 2;
    for (const Factor& f : d.rule->factors) flops *= static_cast<double>(f.size);
    return flops / shards / options_.cost.flop_rate;
  }
  double bytes = 0;
  for (size_t k = 0; k < operand_shapes.size(); ++k) {
    if (d.operands[k] == nullptr) continue;
    double n = 1;
    for (int i = 0; i < operand_shapes[k]->rank(); ++i) n *= d.operands[k]->num_shards(i);
    bytes += Bytes(operand_shapes[k]) / n;
  }
  for (int k = 0; k < instr.shape->num_leaves(); ++k) {
    if (d.produced[k] == nullptr) continue;
    double n = 1;
    for (int i = 0; i < d.produced[k]->rank(); ++i) n *= d.produced[k]->num_shards(i);
    bytes += Bytes(instr.shape->leaf(k)) / n;
  }
  return bytes / options_.cost.memory_rate;
}

Decision* Planner::Evaluate(InstrId id, const ShardingRule& rule,
                            const FactorAssignment& assignment, const States& operands,
                            const States& wanted) {
  const Instruction& instr = module_.instr(id);
  Decision* d = NewDecision();
  d->rule = &rule;
  d->factor_axes.assign(assignment.axes().begin(), assignment.axes().end());
  const std::vector<const Shape*> shapes = OperandShapes(id);
  int collectives = 0;
  for (size_t k = 0; k < shapes.size(); ++k) {
    const Sharding* need =
        shapes[k]->IsArray() ? assignment.TensorSharding(context_, static_cast<int>(k)) : nullptr;
    d->operands.push_back(need);
    d->bytes += ReshardBytes(shapes[k], operands[k], need, &collectives);
  }
  for (int k = 0; k < instr.shape->num_leaves(); ++k) {
    const Shape* leaf = instr.shape->leaf(k);
    if (!leaf->IsArray()) {
      d->produced.push_back(nullptr);
      d->final.push_back(nullptr);
      continue;
    }
    const Sharding* made =
        assignment.TensorSharding(context_, static_cast<int>(shapes.size()) + k);
    d->produced.push_back(made);
    d->final.push_back(wanted[k]);
    d->bytes += ReshardBytes(leaf, made, wanted[k], &collectives);
  }
  d->bytes += HandlerBytes(module_, instr, *d);
  d->seconds = d->bytes / options_.cost.bandwidth + collectives * options_.cost.latency +
               LocalSeconds(instr, shapes, *d);
  return d;
}

Planner::MemoEntry Planner::Decide(InstrId id, const ShardingRule& rule, const States& operands,
                                   const States& wanted) {
  const Instruction& instr = module_.instr(id);
  const std::vector<const Shape*> shapes = OperandShapes(id);
  const int num_operands = static_cast<int>(shapes.size());
  const int num_tensors = rule.num_tensors();
  auto state = [&](int t) {
    return t < num_operands ? operands[t] : wanted[t - num_operands];
  };
  const uint64_t allowed = AllowedFactors(instr, rule);

  // Operands by size, the largest first: the dearest to move leads.
  Order by_size(num_operands);
  std::iota(by_size.begin(), by_size.end(), 0);
  std::stable_sort(by_size.begin(), by_size.end(),
                   [&](int a, int b) { return Bytes(shapes[a]) > Bytes(shapes[b]); });
  Order results;
  for (int t = num_operands; t < num_tensors; ++t) results.push_back(t);

  absl::InlinedVector<Order, 8> orders;
  auto add = [&](const Order& a, const Order& b) {
    Order o = a;
    for (int t : b) {
      if (std::find(o.begin(), o.end(), t) == o.end()) o.push_back(t);
    }
    orders.push_back(std::move(o));
  };
  add(results, by_size);
  add(by_size, results);
  for (size_t k = 1; k < by_size.size() && k < 4; ++k) {
    Order first{by_size[k]};
    add(first, by_size);
  }
  add(results, {});
  for (size_t k = 0; k < by_size.size() && k < 4; ++k) add({by_size[k]}, {});
  orders.push_back({});

  absl::InlinedVector<FactorAssignment, 8> tried;
  const Decision* best = nullptr;
  for (const Order& order : orders) {
    FactorAssignment a(rule, program_.mesh, program_.manual_axes(id), allowed);
    for (int t : order) {
      if (state(t) != nullptr) a.Project(t, *state(t));
    }
    a.Normalize();
    if (std::find(tried.begin(), tried.end(), a) != tried.end()) continue;
    const Decision* d = Evaluate(id, rule, a, operands, wanted);
    tried.push_back(std::move(a));
    if (best == nullptr || d->seconds < best->seconds) best = d;
  }

  MemoEntry entry{best, ""};
  // What was gathered because the op cannot run on shards of a factor. A custom
  // call's own need-replication is its author's word, not a fallback.
  if (instr.opcode == Opcode::kCustomCall) return entry;
  for (int t = 0; t < num_operands && entry.fallback.empty(); ++t) {
    if (operands[t] == nullptr || best->operands[t] == operands[t]) continue;
    const TensorFactors& tensor = rule.tensor(t);
    for (size_t d = 0; d < tensor.dims.size(); ++d) {
      if (!operands[t]->IsDimSharded(static_cast<int>(d)) ||
          best->operands[t]->IsDimSharded(static_cast<int>(d))) {
        continue;
      }
      for (int f : tensor.dims[d]) {
        if (f < 64 && (allowed >> f & 1)) continue;
        if (IsFreeToGather(instr)) continue;
        entry.fallback = absl::StrCat(OpcodeText(instr.opcode), " does not run on shards of dim ",
                                      d, " of operand ", t, "; it is gathered");
      }
    }
  }
  return entry;
}

void Planner::PlanRule(InstrId id, const ShardingRule& rule) {
  const Instruction& instr = module_.instr(id);
  MemoKey key{&rule, program_.region_of[id.value], instr.opcode, OperandStates(id)};
  const States operands = key.states;
  States wanted;
  for (int k = 0; k < instr.shape->num_leaves(); ++k) {
    wanted.push_back(WantedOfOp(id, k));
    key.states.push_back(wanted.back());
  }
  auto it = memo_.find(key);
  if (it == memo_.end()) {
    ++plan_.memo_misses;
    MemoEntry entry = Decide(id, rule, operands, wanted);
    it = memo_.emplace(std::move(key), std::move(entry)).first;
  } else {
    ++plan_.memo_hits;
  }
  if (!it->second.fallback.empty()) plan_.fallbacks.push_back({id, it->second.fallback});
  if (instr.opcode == Opcode::kCustomCall) CheckUneven(id, *it->second.decision);
  Finish(id, PlanKind::kRule, it->second.decision);
}

}  // namespace shardcall
