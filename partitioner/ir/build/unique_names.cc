// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/build/unique_names.h"

#include <string>

#include "absl/strings/str_cat.h"

namespace shardcall {
namespace {

// "add" of "add.7".
absl::string_view WithoutNumber(absl::string_view name) {
  size_t stem = name.size();
  while (stem > 0 && name[stem - 1] >= '0' && name[stem - 1] <= '9') --stem;
  const bool numbered = stem > 1 && stem < name.size() && name[stem - 1] == '.';
  return numbered ? name.substr(0, stem - 1) : name;
}

}  // namespace

UniqueNames::UniqueNames(Arena& arena, size_t expected)
    : arena_(arena), module_(nullptr), of_(kInstructions) {
  taken_.reserve(expected);
}

UniqueNames::UniqueNames(const Module& module, Of of)
    : arena_(module.context().arena()), module_(&module), of_(of) {
  taken_.reserve(of == kInstructions ? module.num_instructions() : module.num_computations());
}

bool UniqueNames::IsOfModule(absl::string_view name) {
  if (module_ == nullptr) return false;
  if (of_module_.empty()) {
    for (int i = 0; of_ == kInstructions && i < module_->num_instructions(); ++i) {
      of_module_.insert(module_->instr(InstrId(i)).name);
    }
    for (int c = 0; of_ == kComputations && c < module_->num_computations(); ++c) {
      of_module_.insert(module_->comp(CompId(c)).name);
    }
  }
  return of_module_.contains(name);
}

absl::string_view UniqueNames::Take(absl::string_view name) {
  if (taken_.insert(name).second) return name;
  const absl::string_view stem = WithoutNumber(name);
  int64_t& next = next_[stem];
  while (true) {
    const std::string made = absl::StrCat(stem, ".", ++next);
    if (taken_.contains(made) || IsOfModule(made)) continue;
    const absl::string_view kept = arena_.Copy(made);
    taken_.insert(kept);
    return kept;
  }
}

CompId AddNamedComputation(absl::string_view name, Module* module) {
  UniqueNames names(module->context().arena(), module->num_computations() + 1);
  for (int c = 0; c < module->num_computations(); ++c) names.Reserve(module->comp(CompId(c)).name);
  return module->AddComputation(module->context().Intern(names.Take(name)));
}

}  // namespace shardcall
