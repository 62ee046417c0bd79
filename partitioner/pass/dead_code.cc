// SPDX-License-Identifier: Apache-2.0
#include <utility>
#include <vector>

#include "shardcall/partitioner/ir/analysis/liveness.h"
#include "shardcall/partitioner/ir/build/module_cloner.h"
#include "shardcall/partitioner/pass/pass.h"

namespace shardcall {
namespace {

class DeadCode : public Pass {
 public:
  absl::string_view name() const override { return "dead-code"; }

  absl::StatusOr<PassResult> Run(const Module& m) override {
    const Liveness live(m, EffectsAt::kPartitioning);
    const std::vector<bool> called = live.CalledComputations();
    PassResult out((Module(m.shared_context())));
    ModuleCloner cloner(m, &out.module);
    cloner.CopyHeader();
    for (int c = 0; c < m.num_computations(); ++c) {
      if (called[c]) {
        cloner.AddComputation(CompId(c));
      } else {
        out.changed = true;
      }
    }
    for (int c = 0; c < m.num_computations(); ++c) {
      if (!called[c]) continue;
      for (InstrId id : m.comp(CompId(c)).instructions) {
        if (live.Has(id)) {
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
};

}  // namespace

std::unique_ptr<Pass> MakeDeadCodeElimination() { return std::make_unique<DeadCode>(); }

}  // namespace shardcall
