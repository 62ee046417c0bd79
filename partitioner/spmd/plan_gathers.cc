// SPDX-License-Identifier: Apache-2.0
// What a plan gathers, or computes in larger parts than wanted, though nobody asked
// for it. Not listed: what annotations, manual regions and partition callbacks ask
// for, and dimensions that the rule of a custom call keeps whole.
#include "partitioner/spmd/handler_traits.h"
#include "partitioner/spmd/planner.h"

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
  if (IsFreeToGather(instr)) return;
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

void Planner::NoteWholeResults(InstrId id, const Decision& d) {
  for (size_t k = 0; k < d.final.size(); ++k) {
    const Sharding *made = d.produced[k], *wanted = d.final[k];
    if (made == nullptr || wanted == nullptr || Parts(*made) >= Parts(*wanted)) continue;
    plan_.gathers.push_back({id, {Gather::Kind::kWhole, static_cast<int>(k), made, wanted, 0}});
  }
}

void Planner::NoteOtherOrders(InstrId id) {
  const Shapes shapes = OperandShapes(id);
  CopyList copies;
  const States operands = OperandStates(id, &copies);
  const auto other = [&](const Sharding* s) {
    return s != nullptr && s->mesh() != program_.mesh && Parts(*s) > 1;
  };
  int collectives = 0;
  for (size_t k = 0; k < operands.size(); ++k) {
    if (!other(operands[k])) continue;
    const Sharding* const whole = Replicated(id, shapes[k]);
    const double bytes =
        ReshardBytes(shapes[k], operands[k], CopiesAt(copies, k), whole, &collectives);
    plan_.gathers.push_back(
        {id, {Gather::Kind::kHandler, static_cast<int>(k), operands[k], whole, bytes}});
  }
  for (int k = 0; k < module_.instr(id).shape->num_leaves(); ++k) {
    const Sharding* const wanted = Wanted(id, k);
    if (!other(wanted)) continue;
    const Sharding* const whole = Replicated(id, module_.instr(id).shape->leaf(k));
    plan_.gathers.push_back({id, {Gather::Kind::kWhole, k, whole, wanted, 0}});
  }
}

void Planner::NoteStateGathers(InstrId id, const Decision& d) {
  const Shapes shapes = OperandShapes(id);
  CopyList copies;
  const States operands = OperandStates(id, &copies);
  int collectives = 0;
  for (size_t k = 0; k < shapes.size() && k < d.operands.size(); ++k) {
    const Sharding *from = operands[k], *to = d.operands[k];
    if (from == to || from == nullptr || to == nullptr) continue;
    if (!from->HasShardedDim() || Parts(*to) >= Parts(*from)) continue;
    const double bytes =
        ReshardBytes(shapes[k], from, CopiesAt(copies, k), to, &collectives);
    if (bytes == 0) continue;
    plan_.gathers.push_back({id, {Gather::Kind::kState, static_cast<int>(k), from, to, bytes}});
  }
}

}  // namespace shardcall
