// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/pass/overlap.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "shardcall/partitioner/ir/analysis/called_computations.h"
#include "shardcall/partitioner/ir/analysis/side_effects.h"
#include "shardcall/partitioner/ir/build/async_pair.h"
#include "shardcall/partitioner/ir/build/module_cloner.h"
#include "shardcall/partitioner/pass/overlap_cost.h"
#include "shardcall/partitioner/pass/overlap_schedule.h"

namespace shardcall {
namespace {

// Computations whose instructions run in sequence: the entry, and those called from such a
// computation by loops, conditionals and calls.
std::vector<bool> FindSequential(const Module& m) {
  std::vector<bool> found(m.num_computations());
  std::vector<CompId> work = {m.entry()};
  found[m.entry().value] = true;
  while (!work.empty()) {
    const CompId comp = work.back();
    work.pop_back();
    for (InstrId id : m.comp(comp).instructions) {
      const Instruction& i = m.instr(id);
      if (!HasTrait(i.opcode, kControlFlow)) continue;
      for (CompId c : CalledComputations(m, i)) {
        if (!found[c.value]) work.push_back(c);
        found[c.value] = true;
      }
    }
  }
  return found;
}

class Overlap final : public Pass {
 public:
  explicit Overlap(const OverlapOptions& options) : options_(options) {}
  absl::string_view name() const override { return "overlap"; }

  absl::StatusOr<PassResult> Run(const Module& m) override {
    PassResult out((Module(m.shared_context())));
    ModuleCloner cloner(m, &out.module);
    cloner.CopyHeader();
    for (int c = 0; c < m.num_computations(); ++c) cloner.AddComputation(CompId(c));
    out.module.set_entry(cloner.now(m.entry()));
    const std::vector<bool> sequential = FindSequential(m);
    const OverlapCosts costs(m, options_.cost);
    const Effects effects(m, EffectsAt::kPartitioning);
    std::vector<bool> effect(m.num_instructions());
    std::vector<int> position(m.num_instructions());
    for (int c = 0; c < m.num_computations(); ++c) {
      const Computation& comp = m.comp(CompId(c));
      bool collectives = false;
      for (size_t k = 0; k < comp.instructions.size(); ++k) {
        const InstrId id = comp.instructions[k];
        position[id.value] = static_cast<int>(k);
        effect[id.value] = effects.Has(m.instr(id));
        collectives = collectives || CanOverlap(m, m.instr(id));
      }
      if (collectives && sequential[c]) {
        out.changed |= Rewrite(m, ScheduleOverlap(m, CompId(c), effect, position, costs, options_),
                               costs, &cloner, &out.module);
      } else {
        for (InstrId id : comp.instructions) cloner.Clone(id);
      }
      cloner.SetRoot(CompId(c));
    }
    out.moved_to = cloner.TakeInstructions();
    out.comp_moved_to = cloner.TakeComputations();
    if (out.changed) AssignNames(&out.module);
    return out;
  }

 private:
  // Emits the instructions in the schedule's order. A collective becomes a pair only if enough is
  // computed between start and done. Returns whether there is any pair.
  bool Rewrite(const Module& m, const std::vector<ScheduledEvent>& events,
               const OverlapCosts& costs, ModuleCloner* cloner, Module* out) {
    struct Open {
      InstrId id;
      size_t number;
      double since;
    };
    std::vector<Open> open;  // few at a time
    std::vector<bool> pairs;
    std::vector<size_t> number(events.size());  // by event: its collective, in order of starts
    double clock = 0;
    for (size_t e = 0; e < events.size(); ++e) {
      const InstrId id = events[e].id;
      if (events[e].kind == ScheduledEvent::kRun) {
        clock += costs.Work(id);
      } else if (events[e].kind == ScheduledEvent::kStart) {
        number[e] = pairs.size();
        open.push_back({id, pairs.size(), clock});
        pairs.push_back(false);
      } else {
        const auto it =
            std::find_if(open.begin(), open.end(), [&](const Open& o) { return o.id == id; });
        number[e] = it->number;
        pairs[it->number] = clock - it->since >= options_.min_overlap_us;
        open.erase(it);
      }
    }
    std::vector<InstrId> starts(pairs.size());
    for (size_t e = 0; e < events.size(); ++e) {
      const InstrId id = events[e].id;
      if (events[e].kind == ScheduledEvent::kRun) {
        cloner->Clone(id);
      } else if (!pairs[number[e]]) {
        if (events[e].kind == ScheduledEvent::kStart) cloner->Clone(id);
      } else if (events[e].kind == ScheduledEvent::kStart) {
        starts[number[e]] = AddStart(m, id, cloner, out);
      } else {
        AddDone(m, id, starts[number[e]], cloner, out);
      }
    }
    // Without a pair a new order has no purpose, so it does not count as a change.
    return std::find(pairs.begin(), pairs.end(), true) != pairs.end();
  }

  // The start keeps the collective's name, which errors print.
  InstrId AddStart(const Module& m, InstrId id, ModuleCloner* cloner, Module* out) {
    absl::InlinedVector<const Shape*, 8> shapes;
    for (InstrId o : m.operands(id)) shapes.push_back(m.instr(o).shape);
    const Instruction start = AsyncStartOf(cloner->CopyOf(id), shapes, out);
    const InstrId now =
        out->Add(cloner->now(m.instr(id).computation), start, cloner->OperandsOf(id));
    cloner->CopyRare(id, now);
    return now;
  }

  void AddDone(const Module& m, InstrId id, InstrId start, ModuleCloner* cloner, Module* out) {
    const Instruction& from = m.instr(id);
    Instruction done = AsyncDoneOf(out->instr(start), from.shape);
    done.metadata = from.metadata;
    cloner->Add(id, done, {start}, cloner->now(from.computation));
  }

  const OverlapOptions options_;
};

}  // namespace

std::unique_ptr<Pass> MakeOverlap(const OverlapOptions& options) {
  return std::make_unique<Overlap>(options);
}

}  // namespace shardcall
