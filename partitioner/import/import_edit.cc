// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "shardcall/partitioner/import/annotations.h"
#include "shardcall/partitioner/import/import_internal.h"
#include "shardcall/partitioner/ir/build/module_cloner.h"

namespace shardcall::inline internal::import_internal {
namespace {

uint64_t Slot(InstrId user, int operand, int clone) {
  return (static_cast<uint64_t>(user.value) << 32) ^ (static_cast<uint64_t>(clone + 1) << 12) ^
         static_cast<uint64_t>(operand);
}

}  // namespace

void ApplyEdit(const ModuleEdit& edit, InlinedModule* inlined) {
  const Module& old = inlined->module;
  Context& context = old.context();
  Module m(old.shared_context());
  ModuleCloner cloner(old, &m);
  cloner.CopyHeader(edit.clones.size() + edit.identities.size());
  for (int c = 0; c < old.num_computations(); ++c) cloner.AddComputation(CompId(c));
  m.set_entry(old.entry());
  UniqueNames names(old, UniqueNames::kInstructions);

  absl::flat_hash_map<uint64_t, int> clone_at;  // operand slot -> clone that replaces the operand
  absl::flat_hash_map<InstrId, std::vector<int>> clones_of, identities_of;
  for (size_t k = 0; k < edit.clones.size(); ++k) {
    clones_of[edit.clones[k].source].push_back(static_cast<int>(k));
    for (const ModuleEdit::Use& use : edit.clones[k].uses) {
      clone_at[Slot(use.user, use.operand, use.clone)] = static_cast<int>(k);
    }
  }
  for (size_t k = 0; k < edit.identities.size(); ++k) {
    identities_of[edit.identities[k].user].push_back(static_cast<int>(k));
  }

  std::vector<InstrId> clones(edit.clones.size());
  std::vector<int32_t> frame_of;
  // Adds an identity of `value` in the computation and call frame of the old instruction `near`.
  const auto add_identity = [&](const ModuleEdit::Identity& want, InstrId value, InstrId near) {
    Instruction identity = ShardingCall(context, m.instr(value).shape);
    identity.name = names.Take(m.instr(value).name.empty() ? "sharding" : m.instr(value).name);
    identity.metadata = m.instr(value).metadata;
    identity.sharding = want.sharding;
    identity.frontend = want.frontend;
    frame_of.push_back(inlined->frame_of[near.value]);
    return m.Add(old.instr(near).computation, identity, absl::MakeConstSpan(&value, 1));
  };
  const auto add = [&](InstrId id, int clone) {
    const Instruction& i = old.instr(id);
    absl::InlinedVector<InstrId, 8> operands;
    for (size_t k = 0; k < i.operand_count; ++k) {
      const auto it = clone_at.find(Slot(id, static_cast<int>(k), clone));
      operands.push_back(it == clone_at.end() ? cloner.now(old.operand(id, k))
                                              : clones[it->second]);
    }
    if (clone < 0) {
      if (const auto it = identities_of.find(id); it != identities_of.end()) {
        for (int k : it->second) {
          const ModuleEdit::Identity& want = edit.identities[k];
          operands[want.operand] = add_identity(want, operands[want.operand], id);
        }
      }
    }
    Instruction copy = cloner.CopyOf(id);
    if (!i.name.empty()) copy.name = names.Take(i.name);
    frame_of.push_back(inlined->frame_of[id.value]);
    if (clone >= 0) return m.Add(i.computation, copy, operands);
    const InstrId made = cloner.Add(id, copy, operands, i.computation);
    cloner.CopyRare(id, made);
    return made;
  };
  for (int i = 0; i < old.num_instructions(); ++i) {
    const InstrId id(i);
    add(id, -1);
    if (const auto it = clones_of.find(id); it != clones_of.end()) {
      for (int k : it->second) clones[k] = add(id, k);
    }
  }
  for (int c = 0; c < old.num_computations(); ++c) {
    cloner.SetRoot(CompId(c));
  }
  if (const auto it = identities_of.find(InstrId()); it != identities_of.end()) {
    // The root is not a tuple instruction: take its results apart, and make a new tuple of them.
    const InstrId old_root = old.comp(old.entry()).root;
    const InstrId root = m.comp(m.entry()).root;
    const Shape* shape = m.instr(root).shape;
    std::vector<InstrId> parts = {root};
    if (shape->IsTuple()) {
      parts.clear();
      for (size_t k = 0; k < shape->tuple().size(); ++k) {
        TupleIndexAttrs attrs;
        attrs.index = static_cast<int64_t>(k);
        Instruction part;
        part.opcode = Opcode::kGetTupleElement;
        part.shape = shape->tuple()[k];
        part.attrs = InternAttributes(context, attrs);
        part.name = names.Take(m.instr(root).name);
        part.metadata = m.instr(root).metadata;
        parts.push_back(m.Add(m.entry(), part, absl::MakeConstSpan(&root, 1)));
        frame_of.push_back(0);
      }
    }
    for (int k : it->second) {
      const ModuleEdit::Identity& want = edit.identities[k];
      int part = 0, flat = want.operand;
      while (shape->IsTuple() && flat >= shape->tuple()[part]->num_leaves()) {
        flat -= shape->tuple()[part++]->num_leaves();
      }
      if (m.instr(parts[part]).shape->IsTuple()) continue;  // inside a nested tuple
      parts[part] = add_identity(want, parts[part], old_root);
    }
    InstrId result = parts[0];
    if (shape->IsTuple()) {
      Instruction whole;
      whole.opcode = Opcode::kTuple;
      whole.shape = shape;
      whole.name = names.Take(m.instr(root).name);
      whole.sharding = m.instr(root).sharding;
      result = m.Add(m.entry(), whole, parts);
      frame_of.push_back(0);
    }
    m.SetRoot(m.entry(), result);
  }
  for (CallFrame& f : inlined->frames) {
    if (f.value.valid()) f.value = cloner.now(f.value);
  }
  inlined->frame_of = std::move(frame_of);
  inlined->module = std::move(m);
}

}  // namespace shardcall::inline internal::import_internal
