// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/pass/overlap.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "shardcall/partitioner/ir/called_computations.h"
#include "shardcall/partitioner/ir/side_effects.h"
#include "shardcall/partitioner/pass/copy_module.h"
#include "shardcall/partitioner/pass/overlap_cost.h"
#include "shardcall/partitioner/pass/overlap_schedule.h"

namespace shardcall {
namespace {

// Computations whose instructions run one after another: the entry, and what loops,
// branches and calls of such run.
std::vector<bool> FindSequential(const Module& m) {
  std::vector<bool> found(m.num_computations());
  std::vector<CompId> work = {m.entry()};
  found[m.entry().value] = true;
  while (!work.empty()) {
    const CompId comp = work.back();
    work.pop_back();
    for (InstrId id : m.comp(comp).instructions) {
      const Instruction& i = m.instr(id);
      if (i.opcode != Opcode::kWhile && i.opcode != Opcode::kConditional &&
          i.opcode != Opcode::kCall) {
        continue;
      }
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
    PassResult out = BeginCopy(m, std::vector<bool>(m.num_computations(), true));
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
        Rewrite(m, ScheduleOverlap(m, CompId(c), effect, position, costs, options_), costs, &out);
      } else {
        for (InstrId id : comp.instructions) CopyInstruction(m, id, &out);
      }
      out.module.SetRoot(out.comp_moved_to[c], out.moved_to[comp.root.value]);
    }
    if (out.changed) AssignNames(&out.module);
    return out;
  }

 private:
  // The schedule's order. A collective is a pair only where enough is computed
  // between its ends.
  void Rewrite(const Module& m, const std::vector<ScheduledEvent>& events,
               const OverlapCosts& costs, PassResult* out) {
    struct Open {
      InstrId id;
      size_t number;
      double since;
    };
    std::vector<Open> open;  // few at a time
    std::vector<bool> pairs;
    std::vector<size_t> number(events.size());  // of the collective, in order of starts
    double clock = 0;
    for (size_t e = 0; e < events.size(); ++e) {
      const InstrId id = events[e].id;
      if (events[e].kind == ScheduledEvent::kRun) {
        clock += costs.Work(m.instr(id));
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
        CopyInstruction(m, id, out);
      } else if (!pairs[number[e]]) {
        if (events[e].kind == ScheduledEvent::kStart) CopyInstruction(m, id, out);
      } else if (events[e].kind == ScheduledEvent::kStart) {
        starts[number[e]] = AddStart(m, id, out);
      } else {
        AddDone(m, id, starts[number[e]], out);
      }
    }
    // The order alone may have changed, which no pair needs then.
    for (bool pair : pairs) out->changed = out->changed || pair;
  }

  // The start keeps the collective's name, which errors state.
  InstrId AddStart(const Module& m, InstrId id, PassResult* out) {
    Context& context = out->module.context();
    Instruction start = CopyOf(m, id, *out);
    absl::InlinedVector<InstrId, 8> operands;
    absl::InlinedVector<const Shape*, 8> shapes;
    for (InstrId o : m.operands(id)) {
      operands.push_back(out->moved_to[o.value]);
      shapes.push_back(m.instr(o).shape);
    }
    const Shape* given = context.MakeTuple(shapes);
    if (const AsyncForms* const forms = FormsOf(start.opcode); forms != nullptr) {
      start.opcode = forms->start;
      // The start of an all-reduce has the shape of its result alone.
      if (forms->whole != Opcode::kAllReduce) {
        start.shape = context.MakeTuple({shapes.size() == 1 ? shapes[0] : given, start.shape});
      }
    } else {
      AsyncAttrs async;
      async.calls = Wrap(start, shapes, out);
      async.sugar = true;
      start.attrs = InternAttributes(context, async);
      start.opcode = Opcode::kAsyncStart;
      start.shape = context.MakeTuple({given, start.shape});
    }
    const CompId comp = out->comp_moved_to[m.instr(id).computation.value];
    const InstrId now = out->module.Add(comp, start, operands);
    CopyRare(m, id, now, out);
    return now;
  }

  // A computation of the collective alone.
  CompId Wrap(const Instruction& collective, absl::Span<const Shape* const> operands,
              PassResult* out) {
    Module& module = out->module;
    const CompId comp = module.AddComputation("async_wrapped");
    absl::InlinedVector<InstrId, 8> parameters;
    for (size_t k = 0; k < operands.size(); ++k) {
      ParameterAttrs attrs;
      attrs.number = static_cast<int64_t>(k);
      parameters.push_back(module.Add(comp, Opcode::kParameter, operands[k], {},
                                      InternAttributes(module.context(), attrs)));
    }
    Instruction root = collective;
    root.name = {};
    module.SetRoot(comp, module.Add(comp, root, parameters));
    return comp;
  }

  void AddDone(const Module& m, InstrId id, InstrId start, PassResult* out) {
    const Instruction& from = m.instr(id);
    Instruction done;
    done.shape = from.shape;
    done.metadata = from.metadata;
    done.attrs = NoAttributes();
    if (const AsyncForms* const forms = FormsStartedBy(out->module.instr(start).opcode);
        forms != nullptr) {
      done.opcode = forms->done;
    } else {
      done.opcode = Opcode::kAsyncDone;
      done.attrs = out->module.instr(start).attrs;
    }
    const CompId comp = out->comp_moved_to[from.computation.value];
    out->moved_to[id.value] = out->module.Add(comp, done, {start});
  }

  const OverlapOptions options_;
};

}  // namespace

std::unique_ptr<Pass> MakeOverlap(const OverlapOptions& options) {
  return std::make_unique<Overlap>(options);
}

}  // namespace shardcall
