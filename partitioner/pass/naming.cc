// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/pass/pass.h"

namespace shardcall {
namespace {

// Gives each thing in order its name, or its stem with the next free number.
class Namer {
 public:
  Namer(Context& context, int count) : context_(context) { taken_.reserve(count); }
  absl::string_view Take(absl::string_view wanted) {
    if (taken_.insert(wanted).second) return wanted;
    absl::string_view stem = wanted;
    const size_t dot = wanted.rfind('.');
    if (dot != absl::string_view::npos && dot + 1 < wanted.size() &&
        wanted.find_first_not_of("0123456789", dot + 1) == absl::string_view::npos) {
      stem = wanted.substr(0, dot);
    }
    int64_t& next = next_[stem];
    for (;;) {
      const std::string name = absl::StrCat(stem, ".", ++next);
      if (taken_.contains(name)) continue;
      const absl::string_view kept = context_.arena().Copy(name);
      taken_.insert(kept);
      return kept;
    }
  }

 private:
  Context& context_;
  absl::flat_hash_set<absl::string_view> taken_;
  absl::flat_hash_map<absl::string_view, int64_t> next_;
};

}  // namespace

void AssignNames(Module* module) {
  Namer comps(module->context(), module->num_computations());
  Namer instrs(module->context(), module->num_instructions());
  for (int c = 0; c < module->num_computations(); ++c) {
    Computation& comp = module->mutable_comp(CompId(c));
    comp.name = comps.Take(comp.name.empty() ? "computation" : comp.name);
  }
  // Names that the program gave stay with it; made ones come after.
  for (int pass = 0; pass < 2; ++pass) {
    for (int i = 0; i < module->num_instructions(); ++i) {
      Instruction& instr = module->mutable_instr(InstrId(i));
      if (pass == 0 && !instr.name.empty()) instr.name = instrs.Take(instr.name);
      if (pass == 1 && instr.name.empty()) instr.name = instrs.Take(OpcodeText(instr.opcode));
    }
  }
}

}  // namespace shardcall
