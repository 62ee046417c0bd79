// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/spmd/plan/op_decider.h"

#include "absl/algorithm/container.h"
#include "absl/base/casts.h"
#include "absl/container/flat_hash_map.h"
#include "shardcall/partitioner/spmd/plan/plan_gathers.h"

namespace shardcall {
inline namespace internal {

const PlanMemo::Entry* OpDecider::Make(const OpQuery& query) {
  const Instruction& instr = query.instr();
  Context& context = table_.context();
  Arena& arena = context.arena();
  PlanMemo::Entry* made = arena.New<PlanMemo::Entry>();
  made->rule = query.rule;
  made->region = program_.region_of[query.id.value];
  made->opcode = instr.opcode;
  made->operands = arena.Copy(query.operands);
  made->wanted = arena.Copy(query.wanted);
  made->copies = arena.Copy(query.copies);
  made->first_with = arena.Copy(query.first_with);
  made->sources = arena.Copy(query.sources);
  made->shares = arena.Copy(query.shares);
  made->accumulated = query.accumulated;
  made->places = arena.Copy(query.places);
  IndexSet allowed;
  const Decision* d = chooser_.Choose(query, &allowed);
  OpQuery decided = query;
  decided.rule = d->rule;
  made->decision = d;
  made->moves = d->operands != query.operands || d->produced != query.wanted;
  const auto gathers = FindGathers(table_, instr, decided, allowed, *d);
  made->gathers = arena.Copy(absl::MakeConstSpan(gathers));
  const std::string fallback = chooser_.Fallback(decided, allowed, *d);
  if (!fallback.empty()) made->fallback = context.Intern(fallback);
  return made;
}

OpDecider::OperandIndices OpDecider::FirstWithValue(InstrId id) const {
  OperandIndices first;
  const Module& module = program_.module;
  const auto operands = module.operands(id);
  if (operands.size() < 2) return first;
  bool repeated = false;
  constexpr size_t kFew = 8;
  absl::flat_hash_map<LeafId, int> seen;  // if there are more
  absl::InlinedVector<LeafId, kFew> leaves;
  for (InstrId o : operands) {
    for (int leaf = 0; leaf < module.instr(o).shape->num_leaves(); ++leaf) {
      const LeafId value = program_.leaves.canonical(o, leaf);
      const int k = static_cast<int>(first.size());
      if (operands.size() > kFew) {
        first.push_back(seen.try_emplace(value, k).first->second);
      } else {
        const auto at = absl::c_find(leaves, value);
        first.push_back(static_cast<int>(at - leaves.begin()));
        leaves.push_back(value);
      }
      repeated = repeated || first.back() != k;
    }
  }
  if (!repeated) first.clear();
  return first;
}

void OpDecider::FindRepeats() {
  const int n = program_.module.num_instructions();
  memo_.last.resize(n);
  memo_.facts.repeats.resize(n);
  for (int i = 0; i < n; ++i) memo_.facts.repeats[i] = !FirstWithValue(InstrId(i)).empty();
}

bool OpDecider::HasBody(InstrId id) {
  return program_.module.instr(id).opcode == Opcode::kCustomCall && rules_.body(id) != nullptr;
}

const PlanMemo::Entry* OpDecider::Decide(InstrId id, const ShardingRule& rule,
                                         const States& operands, const States& wanted,
                                         const Circumstances& c) {
  const Instruction& instr = program_.module.instr(id);
  const int region = program_.region_of[id.value];
  OperandIndices first_with;
  if (memo_.facts.repeats[id.value]) first_with = FirstWithValue(id);
  const auto matches = [&](const PlanMemo::Entry& e) {
    return e.rule == &rule && e.region == region && e.opcode == instr.opcode &&
           e.operands == absl::MakeConstSpan(operands) && e.wanted == absl::MakeConstSpan(wanted) &&
           e.copies == absl::MakeConstSpan(c.copies) &&
           e.first_with == absl::MakeConstSpan(first_with) &&
           e.sources == absl::MakeConstSpan(c.sources) &&
           e.shares == absl::MakeConstSpan(c.shares) && e.accumulated == c.accumulated &&
           e.places == absl::MakeConstSpan(c.places);
  };
  const PlanMemo::Entry*& last = memo_.last[id.value];
  if (last != nullptr && matches(*last)) {
    ++hits_;
    return last;
  }
  uint64_t hash =
      MixHash(reinterpret_cast<uintptr_t>(&rule),
              static_cast<uint64_t>(region) << 16 | static_cast<uint64_t>(instr.opcode));
  for (const Sharding* s : operands) hash = MixHash(hash, reinterpret_cast<uintptr_t>(s));
  for (const Sharding* s : wanted) hash = MixHash(hash, reinterpret_cast<uintptr_t>(s));
  for (const Copies* copies : c.copies) hash = MixHash(hash, reinterpret_cast<uintptr_t>(copies));
  for (int k : first_with) hash = MixHash(hash, static_cast<uint64_t>(k));
  for (const Source& s : c.sources) hash = MixHash(hash, reinterpret_cast<uintptr_t>(s.attrs));
  for (double s : c.shares) hash = MixHash(hash, absl::bit_cast<uint64_t>(s));
  for (int64_t s : c.places) hash = MixHash(hash, static_cast<uint64_t>(s));
  hash = FinishHash(MixHash(hash, absl::bit_cast<uint64_t>(c.accumulated.share)));
  const PlanMemo::Entry* entry = memo_.decisions.Find(hash, matches);
  if (entry != nullptr) {
    ++hits_;
    return last = entry;
  }
  ++misses_;
  const Shapes shapes = table_.OperandShapes(id);
  const PlanInputs inputs{program_, rules_, options_};
  entry = Make({program_.module, id, &rule, shapes, operands, c.copies, wanted, first_with,
                c.sources, c.shares, c.accumulated, c.places, HasBody(id) ? &inputs : nullptr});
  memo_.decisions.Insert(hash, entry);
  return last = entry;
}

}  // namespace internal
}  // namespace shardcall
