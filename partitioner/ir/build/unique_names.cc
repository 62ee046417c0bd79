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

UniqueNames::UniqueNames(const Module& module, Of of) : module_(module), of_(of) {
  taken_.reserve(of == kInstructions ? module.num_instructions() : module.num_computations());
}

absl::string_view UniqueNames::Take(absl::string_view name) {
  if (taken_.insert(name).second) return name;
  if (reserved_.empty()) {
    for (int i = 0; of_ == kInstructions && i < module_.num_instructions(); ++i) {
      reserved_.insert(module_.instr(InstrId(i)).name);
    }
    for (int c = 0; of_ == kComputations && c < module_.num_computations(); ++c) {
      reserved_.insert(module_.comp(CompId(c)).name);
    }
  }
  const absl::string_view base = WithoutNumber(name);
  int64_t& next = next_[base];
  while (true) {
    const std::string tried = absl::StrCat(base, ".", ++next);
    if (taken_.contains(tried) || reserved_.contains(tried)) continue;
    const absl::string_view kept = module_.context().Intern(tried);
    taken_.insert(kept);
    return kept;
  }
}

CompId AddNamedComputation(absl::string_view name, Module* module) {
  const absl::string_view base = WithoutNumber(name);
  bool taken = false;
  int64_t number = 0;
  absl::flat_hash_set<absl::string_view> alike;
  for (int c = 0; c < module->num_computations(); ++c) {
    const absl::string_view known = module->comp(CompId(c)).name;
    taken = taken || known == name;
    if (WithoutNumber(known) == base) alike.insert(known);
  }
  std::string tried(name);
  while (taken) {
    tried = absl::StrCat(base, ".", ++number);
    taken = alike.contains(tried);
  }
  return module->AddComputation(module->context().Intern(tried));
}

}  // namespace shardcall
