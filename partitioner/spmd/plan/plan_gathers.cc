// SPDX-License-Identifier: Apache-2.0
// What a plan gathers, or computes in larger parts than wanted, though nobody asked
// for it. Not listed: what annotations, manual regions and partition callbacks ask
// for, and dimensions that the rule of a custom call keeps whole.
#include "shardcall/partitioner/spmd/plan/planner.h"
#include "shardcall/partitioner/spmd/plan/transfers.h"

namespace shardcall {
namespace {

// Parts that the devices hold of a value; a partial sum is work that is shared too.
int64_t Parts(const Sharding& s) {
  int64_t n = AxesSize(s.partial());
  for (int d = 0; d < s.rank(); ++d) n *= s.num_shards(d);
  return n;
}

struct Lost {
  bool unhandled = false;  // in a dimension whose factors may not be sharded
  bool any = false;
};
// The dimensions in which `to` is in fewer parts than `from`.
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
    case Gather::Kind::kHandler: return "handler";
    case Gather::Kind::kCost: return "cost";
    case Gather::Kind::kState: return "state";
    case Gather::Kind::kWhole: return "whole";
  }
  return "?";
}

void Planner::FindGathers(InstrId id, const IndexSet& allowed, const Shapes& shapes,
                          MemoEntry* entry) {
  const Instruction& instr = module_.instr(id);
  if (HasTrait(instr.opcode, kCollectiveOp)) return;
  const Decision& d = *entry->decision;
  const bool call = instr.opcode == Opcode::kCustomCall;
  absl::InlinedVector<Gather, 4> found;
  int collectives = 0;
  for (size_t k = 0; k < shapes.size(); ++k) {
    const Sharding *from = entry->operands[k], *to = d.operands[k];
    if (from == to || from == nullptr || to == nullptr || !from->HasShardedDim()) continue;
    const Lost lost = LostDims(*entry->rule, static_cast<int>(k), *from, *to, allowed);
    if (!lost.any || (call && lost.unhandled) || Parts(*to) >= Parts(*from)) continue;
    const double bytes =
        ReshardBytes(shapes[k], from, CopiesAt(entry->copies, k), to, &collectives);
    if (bytes == 0) continue;  // it is at hand
    found.push_back({lost.unhandled ? Gather::Kind::kHandler : Gather::Kind::kCost,
                     static_cast<int>(k), from, to, bytes});
  }
  for (size_t k = 0; k < d.final.size(); ++k) {
    const Sharding *made = d.produced[k], *wanted = d.final[k];
    if (made == wanted || made == nullptr || wanted == nullptr) continue;
    const int t = static_cast<int>(shapes.size() + k);
    const Lost lost = LostDims(*entry->rule, t, *wanted, *made, allowed);
    if (!lost.any || (call && lost.unhandled) || Parts(*made) >= Parts(*wanted)) continue;
    found.push_back({Gather::Kind::kWhole, static_cast<int>(k), made, wanted, 0});
  }
  entry->gathers = context_.arena().Copy(absl::MakeConstSpan(found));
}

void Planner::NoteWholeResults(InstrId id, Decision::States produced, Decision::States wanted) {
  for (size_t k = 0; k < wanted.size(); ++k) {
    if (produced[k] == nullptr || wanted[k] == nullptr) continue;
    if (Parts(*produced[k]) >= Parts(*wanted[k])) continue;
    plan_.gathers.push_back(
        {id, {Gather::Kind::kWhole, static_cast<int>(k), produced[k], wanted[k], 0}});
  }
}

void Planner::NoteOtherOrders(InstrId id) {
  // Whole, for those of another order; else null.
  const auto whole = [&](const Shapes& shapes, const States& states) {
    States out;
    for (size_t k = 0; k < shapes.size(); ++k) {
      const bool other = states[k] != nullptr && states[k]->mesh() != program_.mesh;
      out.push_back(other ? Replicated(id, shapes[k]) : nullptr);
    }
    return out;
  };
  NoteOperandGathers(id, Gather::Kind::kHandler, whole(OperandShapes(id), OperandStates(id)));
  Shapes results;
  States wanted;
  for (int k = 0; k < module_.instr(id).shape->num_leaves(); ++k) {
    results.push_back(module_.instr(id).shape->leaf(k));
    wanted.push_back(Wanted(id, k));
  }
  NoteWholeResults(id, whole(results, wanted), wanted);
}

void Planner::NoteOperandGathers(InstrId id, Gather::Kind kind, Decision::States taken) {
  const Shapes shapes = OperandShapes(id);
  CopyList copies;
  const States operands = OperandStates(id, &copies);
  int collectives = 0;
  for (size_t k = 0; k < shapes.size() && k < taken.size(); ++k) {
    const Sharding *from = operands[k], *to = taken[k];
    if (from == to || from == nullptr || to == nullptr) continue;
    if (!from->HasShardedDim() || Parts(*to) >= Parts(*from)) continue;
    const double bytes = ReshardBytes(shapes[k], from, CopiesAt(copies, k), to, &collectives);
    if (bytes == 0) continue;
    plan_.gathers.push_back({id, {kind, static_cast<int>(k), from, to, bytes}});
  }
}

}  // namespace shardcall
