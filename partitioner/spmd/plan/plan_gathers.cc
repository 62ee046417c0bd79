// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/spmd/plan/plan_gathers.h"

namespace shardcall {
namespace {

// The number of parts of a value over the devices. Partial sums count as parts, since they share
// the work too.
int64_t Parts(const Sharding& s) {
  int64_t n = AxesSize(s.partial());
  for (int d = 0; d < s.rank(); ++d) n *= s.num_shards(d);
  return n;
}

struct Lost {
  bool unhandled = false;  // lost in a dimension with a factor that may not be sharded
  bool any = false;
};
// Whether `to` has fewer shards than `from` in some dimension.
Lost LostDims(const ShardingRule& rule, int t, const Sharding& from, const Sharding& to,
              const IndexSet& allowed) {
  Lost lost;
  for (int d = 0; d < from.rank(); ++d) {
    if (to.num_shards(d) >= from.num_shards(d)) continue;
    lost.any = true;
    for (int f : rule.tensor(t).dims[d]) lost.unhandled = lost.unhandled || !allowed.Contains(f);
  }
  return lost;
}

}  // namespace

absl::string_view GatherKindName(Gather::Kind kind) {
  switch (kind) {
    case Gather::Kind::kNoStrategy: return "no strategy";
    case Gather::Kind::kCost: return "cost";
    case Gather::Kind::kState: return "state";
    case Gather::Kind::kWhole: return "whole";
  }
  return "?";
}

absl::InlinedVector<Gather, 4> internal::FindGathers(PlanTable& table, const Instruction& instr,
                                                     const OpQuery& op, const IndexSet& allowed,
                                                     const Decision& decision) {
  absl::InlinedVector<Gather, 4> found;
  if (HasTrait(instr.opcode, kCollectiveOp)) return found;
  const bool call = instr.opcode == Opcode::kCustomCall;
  const int num_operands = static_cast<int>(op.shapes.size());
  for (int k = 0; k < num_operands; ++k) {
    const Sharding *from = op.operands[k], *to = decision.operands[k];
    if (from == to || from == nullptr || to == nullptr || !from->HasShardedDim()) continue;
    // The same value as an operand before, which is gathered once.
    const int first = op.first_with.empty() ? k : op.first_with[k];
    if (first < k && decision.operands[first] == to) continue;
    const Lost lost = LostDims(*op.rule, k, *from, *to, allowed);
    if (!lost.any || (call && lost.unhandled) || Parts(*to) >= Parts(*from)) continue;
    const double bytes = table.ReshardTraffic(op.shapes[k], from, CopiesAt(op.copies, k), to).bytes;
    if (bytes == 0) continue;  // available already
    found.push_back(
        {lost.unhandled ? Gather::Kind::kNoStrategy : Gather::Kind::kCost, k, from, to, bytes});
  }
  for (int k = 0; k < static_cast<int>(decision.final.size()); ++k) {
    const Sharding *made = decision.produced[k], *wanted = decision.final[k];
    if (made == wanted || made == nullptr || wanted == nullptr) continue;
    const Lost lost = LostDims(*op.rule, num_operands + k, *wanted, *made, allowed);
    if (!lost.any || (call && lost.unhandled) || Parts(*made) >= Parts(*wanted)) continue;
    found.push_back({Gather::Kind::kWhole, k, made, wanted, 0});
  }
  return found;
}

void internal::NoteWholeResults(PlanTable& table, InstrId id, Decision::States produced,
                                Decision::States wanted) {
  for (size_t k = 0; k < wanted.size(); ++k) {
    if (produced[k] == nullptr || wanted[k] == nullptr) continue;
    if (Parts(*produced[k]) >= Parts(*wanted[k])) continue;
    table.plan().gathers.push_back(
        {id, {Gather::Kind::kWhole, static_cast<int>(k), produced[k], wanted[k], 0}});
  }
}

void internal::NoteOperandGathers(PlanTable& table, InstrId id, Gather::Kind kind,
                                  Decision::States taken) {
  const Shapes shapes = table.OperandShapes(id);
  CopyList copies;
  const States operands = table.OperandStates(id, &copies);
  for (size_t k = 0; k < shapes.size() && k < taken.size(); ++k) {
    const Sharding *from = operands[k], *to = taken[k];
    if (from == to || from == nullptr || to == nullptr) continue;
    if (!from->HasShardedDim() || Parts(*to) >= Parts(*from)) continue;
    const double bytes = table.ReshardTraffic(shapes[k], from, CopiesAt(copies, k), to).bytes;
    if (bytes == 0) continue;
    table.plan().gathers.push_back({id, {kind, static_cast<int>(k), from, to, bytes}});
  }
}

}  // namespace shardcall
