// SPDX-License-Identifier: Apache-2.0
#include <utility>
#include <vector>

#include "shardcall/partitioner/ir/build/module_cloner.h"
#include "shardcall/partitioner/ir/side_effects.h"
#include "shardcall/partitioner/pass/pass.h"

namespace shardcall {
namespace {

class DeadCode : public Pass {
 public:
  absl::string_view name() const override { return "dead-code"; }

  absl::StatusOr<PassResult> Run(const Module& m) override {
    FindLive(m);
    PassResult out((Module(m.shared_context())));
    ModuleCloner cloner(m, &out.module);
    cloner.CopyHeader();
    for (int c = 0; c < m.num_computations(); ++c) {
      if (live_comps_[c]) {
        cloner.AddComputation(CompId(c));
      } else {
        out.changed = true;
      }
    }
    for (int c = 0; c < m.num_computations(); ++c) {
      if (!live_comps_[c]) continue;
      for (InstrId id : m.comp(CompId(c)).instructions) {
        if (live_[id.value]) {
          cloner.Clone(id);
        } else {
          out.changed = true;
        }
      }
      cloner.SetRoot(CompId(c));
    }
    out.module.set_entry(cloner.now(m.entry()));
    out.moved_to = cloner.TakeInstructions();
    out.comp_moved_to = cloner.TakeComputations();
    return out;
  }

 private:
  void FindLive(const Module& m) {
    const Effects effects(m, EffectsAt::kPartitioning);
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
        const Instruction& i = m.instr(id);
        if (i.opcode == Opcode::kParameter || effects.Has(i)) mark(id);
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

  std::vector<bool> live_, live_comps_;
};

}  // namespace

std::unique_ptr<Pass> MakeDeadCodeElimination() { return std::make_unique<DeadCode>(); }

}  // namespace shardcall
