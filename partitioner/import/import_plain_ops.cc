// SPDX-License-Identifier: Apache-2.0
// What is done to a module once its calls are inlined: what is constant, and what cancels, is often
// so through a call.
#include <optional>
#include <utility>
#include <vector>

#include "shardcall/partitioner/import/import_internal.h"
#include "shardcall/partitioner/ir/analysis/liveness.h"
#include "shardcall/partitioner/ir/build/module_cloner.h"
#include "shardcall/partitioner/ir/simplify/carried_reverses.h"
#include "shardcall/partitioner/ir/simplify/plain_ops.h"

namespace shardcall {
inline namespace internal {
namespace import_internal {
namespace {

void Follow(Rewritten rewritten, InlinedModule* inlined) {
  std::vector<int32_t> frame_of;
  frame_of.reserve(rewritten.made_for.size());
  for (InstrId old : rewritten.made_for) frame_of.push_back(inlined->frame_of[old.value]);
  inlined->frame_of = std::move(frame_of);
  for (CallFrame& f : inlined->frames) {
    if (f.value.valid()) f.value = rewritten.moved_to[f.value.value];
  }
  inlined->module = std::move(rewritten.module);
}

}  // namespace

InlinedModule WithoutDeadCode(InlinedModule inlined) {
  const Module& old = inlined.module;
  const Liveness live(old, EffectsAt::kPartitioning);
  const std::vector<bool> called = live.CalledComputations();
  const auto kept = [&](InstrId id) {
    return live.Has(id) && called[old.instr(id).computation.value];
  };
  bool all = true;
  for (int k = 0; all && k < old.num_instructions(); ++k) all = kept(InstrId(k));
  if (all) return inlined;

  InlinedModule out(Module(old.shared_context()));
  ModuleCloner cloner(old, &out.module);
  cloner.CopyHeader();
  for (int c = 0; c < old.num_computations(); ++c) {
    if (called[c]) cloner.AddComputation(CompId(c));
  }
  for (int k = 0; k < old.num_instructions(); ++k) {
    if (!kept(InstrId(k))) continue;
    cloner.Clone(InstrId(k));
    out.frame_of.push_back(inlined.frame_of[k]);
  }
  for (int c = 0; c < old.num_computations(); ++c) {
    if (called[c]) cloner.SetRoot(CompId(c));
  }
  out.module.set_entry(cloner.now(old.entry()));
  out.frames = std::move(inlined.frames);
  for (CallFrame& f : out.frames) {
    if (f.value.valid()) f.value = cloner.now(f.value);
  }
  return out;
}

InlinedModule WithPlainOps(InlinedModule inlined) {
  bool changed = false;
  const auto apply = [&](const auto& rewrite) {
    std::optional<Rewritten> plainer = rewrite(inlined.module);
    if (!plainer.has_value()) return false;
    Follow(*std::move(plainer), &inlined);
    return changed = true;
  };
  // What an op becomes may have a plainer name, too: a scatter of parts of rows, one of rows.
  while (apply(InPlainOps)) {
  }
  apply(CarryReverses);
  return changed ? WithoutDeadCode(std::move(inlined)) : std::move(inlined);
}

}  // namespace import_internal
}  // namespace internal
}  // namespace shardcall
