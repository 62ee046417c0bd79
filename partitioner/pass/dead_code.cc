// SPDX-License-Identifier: Apache-2.0
#include <utility>
#include <vector>

#include "partitioner/ir/called_computations.h"
#include "partitioner/pass/pass.h"

namespace shardcall {
namespace {

// By itself; a loop or a branch has the effects of what it calls.
bool HasOwnEffect(const Instruction& i) {
  if (i.opcode == Opcode::kParameter || HasTrait(i.opcode, kSideEffect)) return true;
  return i.opcode == Opcode::kCustomCall && i.as<CustomCallAttrs>().has_side_effect;
}

class DeadCode : public Pass {
 public:
  absl::string_view name() const override { return "dead-code"; }

  absl::StatusOr<PassResult> Run(const Module& m) override {
    FindLive(m);
    PassResult out((Module(m.shared_context())));
    out.moved_to.resize(m.num_instructions());
    out.module.Reserve(m.num_instructions(), 2 * m.num_instructions());
    out.comp_moved_to.resize(m.num_computations());
    out.module.header = m.header;
    for (const auto& text : m.texts()) out.module.KeepText(text);
    for (int c = 0; c < m.num_computations(); ++c) {
      if (!live_comps_[c]) {
        out.changed = true;
        continue;
      }
      const Computation& from = m.comp(CompId(c));
      out.comp_moved_to[c] = out.module.AddComputation(from.name);
      out.module.mutable_comp(out.comp_moved_to[c]).execution_thread = from.execution_thread;
    }
    for (int c = 0; c < m.num_computations(); ++c) {
      if (live_comps_[c]) CopyComputation(m, CompId(c), &out);
    }
    out.module.set_entry(out.comp_moved_to[m.entry().value]);
    return out;
  }

 private:
  bool HasEffect(const Module& m, const Instruction& i) const {
    if (HasOwnEffect(i)) return true;
    for (CompId c : CalledComputations(m, i)) {
      if (effects_[c.value]) return true;
    }
    return false;
  }
  void FindEffects(const Module& m) {
    effects_.assign(m.num_computations(), false);
    for (CompId c : ComputationPostOrder(m)) {
      for (InstrId id : m.comp(c).instructions) {
        const Instruction& i = m.instr(id);
        if (i.opcode != Opcode::kParameter && HasEffect(m, i)) effects_[c.value] = true;
      }
    }
  }
  void FindLive(const Module& m) {
    FindEffects(m);
    live_.assign(m.num_instructions(), false);
    live_comps_.assign(m.num_computations(), false);
    std::vector<CompId> comps{m.entry()};
    live_comps_[m.entry().value] = true;
    std::vector<InstrId> work;
    auto mark = [&](InstrId id) {
      if (live_[id.value]) return;
      live_[id.value] = true;
      work.push_back(id);
    };
    while (!comps.empty()) {
      const Computation& comp = m.comp(comps.back());
      comps.pop_back();
      mark(comp.root);
      for (InstrId id : comp.instructions) {
        if (HasEffect(m, m.instr(id))) mark(id);
      }
      while (!work.empty()) {
        const InstrId id = work.back();
        work.pop_back();
        for (InstrId o : m.operands(id)) mark(o);
        if (const RareAttributes* rare = m.rare(m.instr(id))) {
          for (InstrId p : rare->control_predecessors) mark(p);
        }
        for (CompId c : CalledComputations(m, m.instr(id))) {
          if (live_comps_[c.value]) continue;
          live_comps_[c.value] = true;
          comps.push_back(c);
        }
      }
    }
  }

  void CopyComputation(const Module& m, CompId c, PassResult* out) {
    const Computation& from = m.comp(c);
    const CompId to = out->comp_moved_to[c.value];
    out->module.mutable_comp(to).instructions.reserve(from.instructions.size());
    absl::InlinedVector<InstrId, 8> operands;
    for (InstrId id : from.instructions) {
      if (!live_[id.value]) {
        out->changed = true;
        continue;
      }
      Instruction copy = m.instr(id);
      operands.clear();
      for (InstrId o : m.operands(id)) operands.push_back(out->moved_to[o.value]);
      copy.attrs = MapComputations(m, copy, [&](CompId k) { return out->comp_moved_to[k.value]; });
      copy.extra = -1;
      const InstrId now = out->module.Add(to, copy, operands);
      out->moved_to[id.value] = now;
      if (const RareAttributes* rare = m.rare(m.instr(id))) {
        RareAttributes& r = out->module.mutable_rare(now);
        r = *rare;
        for (InstrId& p : r.control_predecessors) p = out->moved_to[p.value];
      }
    }
    out->module.SetRoot(to, out->moved_to[from.root.value]);
  }

  std::vector<bool> live_, live_comps_;
  std::vector<bool> effects_;  // by computation
};

}  // namespace

std::unique_ptr<Pass> MakeDeadCodeElimination() { return std::make_unique<DeadCode>(); }

}  // namespace shardcall
