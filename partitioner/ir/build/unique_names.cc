// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/build/unique_names.h"

#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace shardcall {
namespace {

struct Parts {
  absl::string_view stem;  // "add" of "add.7", or the whole name
  int64_t number = 0;      // 7, or 0: none that Take could have made
};
Parts PartsOf(absl::string_view name) {
  size_t stem = name.size();
  while (stem > 0 && name[stem - 1] >= '0' && name[stem - 1] <= '9') --stem;
  const bool numbered = stem > 1 && stem < name.size() && name[stem - 1] == '.';
  if (!numbered) return {name};
  Parts parts{name.substr(0, stem - 1)};
  if (name[stem] == '0' || !absl::SimpleAtoi(name.substr(stem), &parts.number)) parts.number = 0;
  return parts;
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

bool UniqueNames::IsMade(absl::string_view name) {
  if (last_.empty()) return false;
  const Parts parts = PartsOf(name);
  if (parts.number == 0) return false;
  const auto found = last_.find(parts.stem);
  return found != last_.end() && parts.number <= found->second && !IsOfModule(name);
}

absl::string_view UniqueNames::Take(absl::string_view name) {
  if (!IsMade(name) && taken_.insert(name).second) return name;
  const absl::string_view stem = PartsOf(name).stem;
  int64_t& last = last_[stem];
  while (true) {
    const std::string made = absl::StrCat(stem, ".", ++last);
    if (!taken_.contains(made) && !IsOfModule(made)) return arena_.Copy(made);
  }
}

CompId AddNamedComputation(absl::string_view name, Module* module) {
  UniqueNames names(module->context().arena(), module->num_computations() + 1);
  for (int c = 0; c < module->num_computations(); ++c) names.Reserve(module->comp(CompId(c)).name);
  return module->AddComputation(module->context().Intern(names.Take(name)));
}

}  // namespace shardcall
