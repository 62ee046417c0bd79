// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/spmd/localize/whole_copies.h"

#include <vector>

#include "shardcall/partitioner/import/export.h"

namespace shardcall {
inline namespace internal {

CompId WholeCopies::Of(CompId global) {
  if (cloner_ == nullptr) cloner_ = std::make_unique<ModuleCloner>(program_.module, &local_);
  // Callees first, with an explicit stack, since nesting may be deep.
  std::vector<CompId> work{global};
  while (!work.empty()) {
    const CompId comp = work.back();
    if (cloner_->now(comp).valid()) {
      work.pop_back();
      continue;
    }
    const size_t before = work.size();
    for (InstrId id : program_.module.comp(comp).instructions) {
      for (CompId c : CalledComputations(program_.module, program_.module.instr(id))) {
        if (!cloner_->now(c).valid()) work.push_back(c);
      }
    }
    if (work.size() > before) continue;
    work.pop_back();
    Copy(comp);
  }
  return cloner_->now(global);
}

void WholeCopies::Copy(CompId comp) {
  const Module& global = program_.module;
  const CompId to = cloner_->AddComputation(comp);
  for (InstrId id : global.comp(comp).instructions) {
    const AnnotationKind annotation = program_.annotation[id.value];
    if (annotation == AnnotationKind::kGroup) continue;
    if (annotation == AnnotationKind::kIdentity) {
      cloner_->Set(id, cloner_->now(global.operand(id, 0)));
      continue;
    }
    Instruction copy = cloner_->CopyOf(id);
    copy.sharding = nullptr;
    copy.frontend = WithoutSdy(local_.context(), copy.frontend);
    cloner_->CopyOrder(id, cloner_->Add(id, copy, cloner_->OperandsOf(id), to));
  }
  cloner_->SetRoot(comp);
}

}  // namespace internal
}  // namespace shardcall
