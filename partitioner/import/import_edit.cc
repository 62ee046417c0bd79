// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "shardcall/partitioner/import/annotations.h"
#include "shardcall/partitioner/import/import_internal.h"
#include "shardcall/partitioner/ir/analysis/side_effects.h"
#include "shardcall/partitioner/ir/build/module_cloner.h"
#include "shardcall/sharding/tuple_leaves.h"

namespace shardcall {
inline namespace internal {
namespace import_internal {
namespace {

uint64_t Slot(InstrId user, int operand, int clone) {
  return (static_cast<uint64_t>(user.value) << 32) ^ (static_cast<uint64_t>(clone + 1) << 12) ^
         static_cast<uint64_t>(operand);
}

// The new module of one edit: the old instructions in their order, each followed by its clones.
class EditedModule {
 public:
  EditedModule(const ModuleEdit& edit, InlinedModule* inlined)
      : edit_(edit),
        inlined_(*inlined),
        old_(inlined->module),
        new_(old_.shared_context()),
        cloner_(old_, &new_),
        names_(old_, UniqueNames::kInstructions),
        clones_(edit.clones.size()) {}

  // Makes the new module, which takes the place of the old one.
  void Run() {
    IndexEdit();
    cloner_.CopyHeader(edit_.clones.size() + edit_.identities.size());
    for (int c = 0; c < old_.num_computations(); ++c) cloner_.AddComputation(CompId(c));
    new_.set_entry(old_.entry());
    FindUnused();
    for (int i = 0; i < old_.num_instructions(); ++i) {
      const InstrId id(i);
      if (unused_[i]) continue;
      Add(id, -1);
      if (const auto it = clones_of_.find(id); it != clones_of_.end()) {
        for (int k : it->second) clones_[k] = Add(id, k);
      }
    }
    for (int c = 0; c < old_.num_computations(); ++c) cloner_.SetRoot(CompId(c));
    if (const auto it = identities_of_.find(InstrId()); it != identities_of_.end()) {
      AddIdentitiesOfResults(it->second);
    }
    for (CallFrame& f : inlined_.frames) {
      if (f.value.valid()) f.value = cloner_.now(f.value);
    }
    if (!edit_.unstated_results.empty()) inlined_.unstated_results = edit_.unstated_results;
    inlined_.frame_of = std::move(frame_of_);
    inlined_.place = std::move(place_);
    inlined_.module = std::move(new_);
  }

 private:
  void IndexEdit() {
    for (size_t k = 0; k < edit_.clones.size(); ++k) {
      clones_of_[edit_.clones[k].source].push_back(static_cast<int>(k));
      for (const ModuleEdit::Use& use : edit_.clones[k].uses) {
        clone_at_[Slot(use.user, use.operand, use.clone)] = static_cast<int>(k);
      }
    }
    for (size_t k = 0; k < edit_.identities.size(); ++k) {
      identities_of_[edit_.identities[k].user].push_back(static_cast<int>(k));
    }
  }

  // Notes of what is added next that it stands where the old instruction does, in this frame.
  void StandsWhere(InstrId old, int32_t frame) {
    frame_of_.push_back(frame);
    if (!inlined_.place.empty()) place_.push_back(inlined_.place[old.value]);
  }

  // What only rewritten operands used. Operands stand before their users, in order of ids.
  void FindUnused() {
    const int n = old_.num_instructions();
    unused_.assign(n, false);
    if (edit_.rewrites.empty()) return;
    std::vector<int> uses(n, 0);
    for (int i = 0; i < n; ++i) {
      for (InstrId o : old_.operands(InstrId(i))) ++uses[o.value];
    }
    for (const auto& [id, rewrite] : edit_.rewrites) ++uses[rewrite.value.value];
    for (int c = 0; c < old_.num_computations(); ++c) {
      if (const InstrId root = old_.comp(CompId(c)).root; root.valid()) ++uses[root.value];
    }
    for (const CallFrame& f : inlined_.frames) {
      if (f.value.valid()) ++uses[f.value.value];
    }
    const auto release = [&](InstrId id) {
      const Opcode opcode = old_.instr(id).opcode;
      unused_[id.value] = --uses[id.value] == 0 && IsPure(opcode) && opcode != Opcode::kParameter;
    };
    for (const auto& [id, rewrite] : edit_.rewrites) release(old_.operand(id, rewrite.operand));
    for (int i = n; i-- > 0;) {
      if (!unused_[i]) continue;
      for (InstrId o : old_.operands(InstrId(i))) release(o);
    }
  }

  // Adds an identity of `value` in the computation and call frame of the old instruction `near`.
  InstrId AddIdentity(const ModuleEdit::Identity& want, InstrId value, InstrId near) {
    Instruction identity = ShardingCall(old_.context(), new_.instr(value).shape);
    identity.name =
        names_.Take(new_.instr(value).name.empty() ? "sharding" : new_.instr(value).name);
    identity.metadata = new_.instr(value).metadata;
    identity.sharding = want.sharding;
    identity.frontend = want.frontend;
    StandsWhere(near, inlined_.frame_of[near.value]);
    return new_.Add(old_.instr(near).computation, identity, absl::MakeConstSpan(&value, 1));
  }

  // Adds the copy of an old instruction, or its clone with that index if it is not negative.
  InstrId Add(InstrId id, int clone) {
    const Instruction& i = old_.instr(id);
    absl::InlinedVector<InstrId, 8> operands;
    for (size_t k = 0; k < i.operand_count; ++k) {
      const auto it = clone_at_.find(Slot(id, static_cast<int>(k), clone));
      operands.push_back(it == clone_at_.end() ? cloner_.now(old_.operand(id, k))
                                               : clones_[it->second]);
    }
    Instruction copy = cloner_.CopyOf(id);
    if (const auto it = edit_.rewrites.find(id); it != edit_.rewrites.end()) {
      operands[it->second.operand] = cloner_.now(it->second.value);
      copy.attrs = it->second.attrs;  // computations keep their numbers
    }
    if (clone < 0) {
      if (const auto it = identities_of_.find(id); it != identities_of_.end()) {
        for (int k : it->second) {
          const ModuleEdit::Identity& want = edit_.identities[k];
          operands[want.operand] = AddIdentity(want, operands[want.operand], id);
        }
      }
    }
    if (!i.name.empty()) copy.name = names_.Take(i.name);
    StandsWhere(id, inlined_.frame_of[id.value]);
    if (clone >= 0) return new_.Add(i.computation, copy, operands);
    const InstrId made = cloner_.Add(id, copy, operands, i.computation);
    cloner_.CopyRare(id, made, [&](InstrId before) { return !unused_[before.value]; });
    return made;
  }

  // Adds the identities of the entry's results. Its root may be any instruction, so its results are
  // taken apart and put into a new tuple.
  void AddIdentitiesOfResults(const std::vector<int>& identities) {
    const InstrId root = new_.comp(new_.entry()).root;
    const Shape* shape = new_.instr(root).shape;
    // An element of a tuple is the tuple's value, which the sharding of the result does not bind.
    if (new_.instr(root).opcode == Opcode::kGetTupleElement && shape->IsArray()) {
      new_.mutable_instr(root).sharding = nullptr;
    }
    std::vector<InstrId> parts = shape->IsTuple() ? TakeApart(root) : std::vector<InstrId>{root};
    for (int k : identities) {
      const ModuleEdit::Identity& want = edit_.identities[k];
      const int part = shape->IsTuple() ? ElementOfLeaf(*shape, want.operand) : 0;
      if (new_.instr(parts[part]).shape->IsTuple()) continue;  // inside a nested tuple
      parts[part] = AddIdentity(want, parts[part], old_.comp(old_.entry()).root);
    }
    InstrId result = parts[0];
    if (shape->IsTuple()) {
      Instruction whole;
      whole.opcode = Opcode::kTuple;
      whole.shape = shape;
      whole.name = names_.Take(new_.instr(root).name);
      whole.sharding = new_.instr(root).sharding;
      result = new_.Add(new_.entry(), whole, parts);
      StandsWhere(old_.comp(old_.entry()).root, 0);
    }
    new_.SetRoot(new_.entry(), result);
  }

  // The elements of a tuple of the entry.
  std::vector<InstrId> TakeApart(InstrId tuple) {
    const Shape* shape = new_.instr(tuple).shape;
    std::vector<InstrId> parts;
    for (size_t k = 0; k < shape->tuple().size(); ++k) {
      TupleIndexAttrs attrs;
      attrs.index = static_cast<int64_t>(k);
      Instruction part;
      part.opcode = Opcode::kGetTupleElement;
      part.shape = shape->tuple()[k];
      part.attrs = InternAttributes(old_.context(), attrs);
      part.name = names_.Take(new_.instr(tuple).name);
      part.metadata = new_.instr(tuple).metadata;
      parts.push_back(new_.Add(new_.entry(), part, absl::MakeConstSpan(&tuple, 1)));
      StandsWhere(old_.comp(old_.entry()).root, 0);
    }
    return parts;
  }

  const ModuleEdit& edit_;
  InlinedModule& inlined_;
  const Module& old_;
  Module new_;
  ModuleCloner cloner_;
  UniqueNames names_;
  absl::flat_hash_map<uint64_t, int> clone_at_;  // operand slot -> clone that replaces the operand
  absl::flat_hash_map<InstrId, std::vector<int>> clones_of_, identities_of_;
  std::vector<bool> unused_;  // by instruction of the old module: not in the new one
  std::vector<InstrId> clones_;
  std::vector<int32_t> frame_of_, place_;
};

}  // namespace

void ApplyEdit(const ModuleEdit& edit, InlinedModule* inlined) {
  EditedModule(edit, inlined).Run();
}

}  // namespace import_internal
}  // namespace internal
}  // namespace shardcall
