// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/import/canonical_order.h"

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "shardcall/partitioner/ir/analysis/called_computations.h"
#include "shardcall/partitioner/ir/analysis/needs_first.h"
#include "shardcall/partitioner/ir/analysis/side_effects.h"
#include "shardcall/partitioner/ir/build/module_cloner.h"

namespace shardcall {
inline namespace internal {
namespace import_internal {
namespace {

// What is called from the entry: computations in the order of their first calls, and instructions
// in canonical order, those of a computation before the first one that calls it.
class CalledInOrder {
 public:
  explicit CalledInOrder(const Module& module)
      : module_(module),
        effects_(module, EffectsAt::kRunning),
        needs_first_(module),
        met_(module.num_computations()) {}

  void Run() {
    Enter(module_.entry());
    while (!open_.empty()) {
      Open& c = open_.back();
      if (c.next == c.instructions.size()) {
        open_.pop_back();
        continue;
      }
      const InstrId id = c.instructions[c.next];
      if (c.entered == 0) c.called = CalledComputations(module_, module_.instr(id));
      if (c.entered < c.called.size()) {
        Enter(c.called[c.entered++]);
        continue;
      }
      instructions.push_back(id);
      ++c.next;
      c.entered = 0;
    }
  }

  // Whether nothing changes.
  bool AreNumbered() const {
    const auto numbered = [](const auto& ids) {
      for (size_t k = 0; k < ids.size(); ++k) {
        if (ids[k].value != k) return false;
      }
      return true;
    };
    return numbered(instructions) && numbered(computations);
  }

  std::vector<InstrId> instructions;
  std::vector<CompId> computations;

 private:
  struct Open {
    std::vector<InstrId> instructions;
    size_t next = 0;
    // What the next one calls, and how many of these are entered.
    absl::InlinedVector<CompId, 2> called = {};
    size_t entered = 0;
  };

  void Enter(CompId comp) {
    if (met_[comp.value]) return;
    met_[comp.value] = true;
    computations.push_back(comp);
    open_.push_back({InOrder(comp)});
  }

  // To be called once for each computation.
  std::vector<InstrId> InOrder(CompId comp) {
    const Computation& c = module_.comp(comp);
    if (module_.header.is_scheduled) return c.instructions;
    std::vector<InstrId> order;
    order.reserve(c.instructions.size());
    for (InstrId p : c.parameters) needs_first_.Add(p, &order);
    for (InstrId id : c.instructions) {
      if (effects_.Has(module_.instr(id))) needs_first_.Add(id, &order);
    }
    needs_first_.Add(c.root, &order);
    for (InstrId id : c.instructions) needs_first_.Add(id, &order);
    return order;
  }

  const Module& module_;
  const Effects effects_;
  NeedsFirst needs_first_;
  std::vector<bool> met_;  // by computation
  std::vector<Open> open_;
};

}  // namespace

InlinedModule InCanonicalOrder(InlinedModule inlined) {
  const Module& old = inlined.module;
  CalledInOrder order(old);
  order.Run();
  if (order.AreNumbered()) return inlined;
  InlinedModule out(Module(old.shared_context()));
  ModuleCloner cloner(old, &out.module);
  cloner.CopyHeader();
  for (CompId c : order.computations) cloner.AddComputation(c);
  for (InstrId id : order.instructions) {
    cloner.Clone(id);
    out.frame_of.push_back(inlined.frame_of[id.value]);
    out.place.push_back(inlined.place.empty() ? static_cast<int32_t>(id.value)
                                              : inlined.place[id.value]);
  }
  for (CompId c : order.computations) cloner.SetRoot(c);
  out.module.set_entry(cloner.now(old.entry()));
  out.frames = std::move(inlined.frames);
  for (CallFrame& f : out.frames) {
    if (f.value.valid()) f.value = cloner.now(f.value);
  }
  out.unstated_results = std::move(inlined.unstated_results);
  return out;
}

}  // namespace import_internal
}  // namespace internal
}  // namespace shardcall
