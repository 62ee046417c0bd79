// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/spmd/localize/text_order.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "shardcall/partitioner/ir/analysis/needs_first.h"
#include "shardcall/partitioner/ir/build/module_cloner.h"

namespace shardcall {
inline namespace internal {

void TextOrder::NoteEmitted(InstrId id, const Module& local) {
  if (place_.empty()) return;
  const int32_t place = id.valid() ? place_[id.value] : std::numeric_limits<int32_t>::max();
  place_of_.resize(local.num_instructions(), place);
}

void TextOrder::Restore(absl::Span<const CompId> computations, LocalProgram* local) const {
  if (place_.empty()) return;
  Module& old = local->module;
  NeedsFirst needs_first(old);
  for (const CompId comp : computations) {
    std::vector<InstrId>& instructions = old.mutable_comp(comp).instructions;
    instructions = needs_first.ByPlace(instructions, place_of_);
  }
  // Passes take it that what is needed has the smaller number.
  Module module(old.shared_context());
  ModuleCloner cloner(old, &module);
  cloner.CopyHeader();
  for (int c = 0; c < old.num_computations(); ++c) cloner.AddComputation(CompId(c));
  for (const CompId c : ComputationPostOrder(old)) {
    for (const InstrId id : old.comp(c).instructions) cloner.Clone(id);
    cloner.SetRoot(c);
  }
  module.set_entry(cloner.now(old.entry()));
  for (CollectiveRecord& r : local->collectives) r.local = cloner.now(r.local);
  std::stable_sort(local->collectives.begin(), local->collectives.end(),
                   [](const CollectiveRecord& a, const CollectiveRecord& b) {
                     return a.local.value < b.local.value;
                   });
  local->module = std::move(module);
}

}  // namespace internal
}  // namespace shardcall
