// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/pass/invariant_collectives.h"

#include <utility>

#include "absl/algorithm/container.h"
#include "shardcall/partitioner/ir/analysis/called_computations.h"
#include "shardcall/partitioner/ir/analysis/side_effects.h"
#include "shardcall/partitioner/ir/analysis/trip_count.h"

namespace shardcall {
inline namespace internal {
namespace {

class Finder {
 public:
  Finder(const Module& m, int64_t* room) : m_(m), room_(*room) {
    invariant_.resize(m.num_instructions());
    needed_.resize(m.num_instructions());
    callers_.resize(m.num_computations());
    only_elements_.assign(m.num_instructions(), true);
    for (int k = 0; k < m.num_instructions(); ++k) {
      const Instruction& i = m.instr(InstrId(k));
      for (const CompId c : CalledComputations(m, i)) ++callers_[c.value];
      if (i.opcode == Opcode::kGetTupleElement) continue;
      for (const InstrId o : m.operands(i)) only_elements_[o.value] = false;
    }
    for (int c = 0; c < m.num_computations(); ++c) {
      only_elements_[m.comp(CompId(c)).root.value] = false;
    }
  }

  InvariantCollectives In(InstrId id) {
    InvariantCollectives loop{.loop = id, .only_elements = only_elements_[id.value]};
    const auto& attrs = m_.instr(id).as<WhileAttrs>();
    const Computation& body = m_.comp(attrs.body);
    const InstrId p = body.parameters[0];
    if (callers_[attrs.body.value] != 1 || callers_[attrs.condition.value] != 1 ||
        m_.instr(body.root).opcode != Opcode::kTuple || !only_elements_[p.value] ||
        !only_elements_[m_.comp(attrs.condition).parameters[0].value]) {
      return loop;
    }
    const int64_t trips = KnownTripCount(m_, id);
    if (trips == 0 || trips == 1 || !FindInvariant(body)) return loop;
    // What the rest of the body reads of it, from the last instruction to the first.
    for (auto it = body.instructions.rbegin(); it != body.instructions.rend(); ++it) {
      if (invariant_[it->value] && (!needed_[it->value] || IsCandidate(m_.instr(*it)))) continue;
      for (const InstrId o : m_.operands(*it)) needed_[o.value] = true;
    }
    for (const InstrId x : body.instructions) {
      if (!invariant_[x.value]) continue;
      const bool carried = needed_[x.value] && IsCandidate(m_.instr(x));
      if (carried) loop.carried.push_back(x);
      if (carried || !needed_[x.value]) loop.dropped.insert(x);
    }
    if (!loop.carried.empty()) loop.moved = Sources(body, loop.carried);
    return loop;
  }

 private:
  static bool IsCandidate(const Instruction& i) {
    return HasTrait(i.opcode, kCollectiveOp) && !HasTrait(i.opcode, kAsyncForm) &&
           i.shape->IsArray();
  }

  // Marks what is the same in each iteration. False if there is no collective among it for which
  // there is room.
  bool FindInvariant(const Computation& body) {
    bool found = false;
    for (const InstrId x : body.instructions) {
      const Instruction& i = m_.instr(x);
      bool same = false;
      if (i.opcode == Opcode::kGetTupleElement && m_.operand(x, 0) == body.parameters[0]) {
        same = i.shape->IsArray() && IsPassedOn(body, x);
      } else if (i.opcode != Opcode::kParameter && x != body.root && MayMove(x)) {
        same = absl::c_all_of(m_.operands(i), [&](InstrId o) { return invariant_[o.value]; });
      }
      if (same && IsCandidate(i)) {
        const int64_t bytes = i.shape->byte_size();
        same = bytes <= room_;
        if (same) room_ -= bytes;
        found = found || same;
      }
      invariant_[x.value] = same;
    }
    return found;
  }

  // Whether the element of the parameter that `x` reads is in its place in the root.
  bool IsPassedOn(const Computation& body, InstrId x) const {
    const Attributes* const attrs = m_.instr(x).attrs;
    const auto& index = m_.instr(x).as<TupleIndexAttrs>();
    const InstrId next = m_.operand(body.root, static_cast<int>(index.index));
    const Instruction& n = m_.instr(next);
    return n.opcode == Opcode::kGetTupleElement && n.attrs == attrs &&
           m_.operand(next, 0) == body.parameters[0];
  }

  bool MayMove(InstrId x) const {
    const Instruction& i = m_.instr(x);
    const RareAttributes* const rare = m_.rare(i);
    if (rare != nullptr && !rare->control_predecessors.empty()) return false;
    if (HasSideEffect(i, EffectsAt::kRunning)) return false;
    return IsPure(i.opcode) || IsCandidate(i);
  }

  // The instructions of the body that these are made of, and they themselves.
  std::vector<InstrId> Sources(const Computation& body, const std::vector<InstrId>& carried) {
    absl::flat_hash_set<InstrId> in(carried.begin(), carried.end());
    std::vector<InstrId> sources;
    for (auto it = body.instructions.rbegin(); it != body.instructions.rend(); ++it) {
      if (!in.contains(*it)) continue;
      const auto operands = m_.operands(*it);
      if (absl::c_linear_search(operands, body.parameters[0])) continue;  // an element of it
      sources.push_back(*it);
      in.insert(operands.begin(), operands.end());
    }
    absl::c_reverse(sources);
    return sources;
  }

  const Module& m_;
  int64_t& room_;
  std::vector<bool> invariant_;      // by instruction of a body
  std::vector<bool> needed_;         // by instruction: what stays in the body reads it
  std::vector<int> callers_;         // by computation
  std::vector<bool> only_elements_;  // by instruction: nothing but elements of it is read
};

}  // namespace

std::vector<InvariantCollectives> FindInvariantCollectives(const Module& m, int64_t* room) {
  std::vector<InvariantCollectives> found;
  const std::vector<InstrId> loops = LoopsWithOwnBody(m);
  if (loops.empty()) return found;
  Finder finder(m, room);
  for (const InstrId id : loops) {
    InvariantCollectives loop = finder.In(id);
    if (!loop.carried.empty()) found.push_back(std::move(loop));
  }
  return found;
}

}  // namespace internal
}  // namespace shardcall
