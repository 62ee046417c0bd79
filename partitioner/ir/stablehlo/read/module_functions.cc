// SPDX-License-Identifier: Apache-2.0
// Functions as computations.
#include <string>

#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/ir/annotation_names.h"
#include "shardcall/partitioner/ir/stablehlo/read/computation_reader.h"
#include "shardcall/partitioner/ir/stablehlo/read/module_reader.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace stablehlo {

absl::StatusOr<InstrId> ModuleReader::Parameter(const Operation& function, CompId comp, size_t k) {
  const uint32_t value = function.regions[0].blocks[0].arguments[k];
  ParameterAttrs attrs;
  attrs.number = static_cast<int64_t>(k);
  Instruction i;
  i.opcode = Opcode::kParameter;
  SHARDCALL_ASSIGN_OR_RETURN(i.shape, ShapeOfValue(value));
  i.attrs = InternAttributes(context(), attrs);
  i.metadata = locations_.Of(function.regions[0].blocks[0].argument_locations[k]);
  const absl::string_view said = i.metadata == nullptr ? "" : i.metadata->op_name;
  i.name = names_.Take(context().Intern(LegalName(said, absl::StrCat("arg", k))));
  const InstrId id = module_.Add(comp, i, {});
  SetInstr(value, id);
  const Attribute* dicts = code_.Find(function, "arg_attrs");
  if (dicts == nullptr || k >= dicts->items.size()) return id;
  const Attribute& dict = code_.attribute(dicts->items[k]);
  SHARDCALL_RETURN_IF_ERROR(
      CheckKnown(&dict, "an argument",
                 {kMhloFrontendAttributes, kMhloSharding, kDialectSharding, "tf.aliasing_output"}));
  SHARDCALL_RETURN_IF_ERROR(annotations_.Annotate(dict, id));
  return id;
}

absl::Status ModuleReader::CheckFunction(const Operation& function) const {
  if (function.regions.size() != 1 || function.regions[0].blocks.size() != 1) {
    return Cannot("a function without one block");
  }
  const Attribute* all = function.attributes < 0
                             ? nullptr
                             : &code_.attribute(static_cast<uint32_t>(function.attributes));
  for (const char* name : {"arg_attrs", "res_attrs"}) {
    const Attribute* dicts = code_.Find(function, name);
    if (dicts != nullptr && dicts->kind != Attribute::Kind::kArray) {
      return Cannot(absl::StrCat("a function with ", name, " of an unknown form"));
    }
  }
  return CheckKnown(all, "a function",
                    {"arg_attrs", "function_type", "res_attrs", "sym_name", "sym_visibility"});
}

absl::StatusOr<CompId> ModuleReader::Function(absl::string_view name) {
  if (const auto it = read_.find(name); it != read_.end()) return it->second;
  const auto found = functions_.find(name);
  if (found == functions_.end())
    return Cannot(absl::StrCat("a call of ", name, ", which it lacks"));
  const Operation& function = *found->second;
  SHARDCALL_RETURN_IF_ERROR(CheckFunction(function));
  if (const Attribute* dicts = code_.Find(function, "res_attrs"); dicts != nullptr) {
    for (uint32_t dict : dicts->items) {
      SHARDCALL_RETURN_IF_ERROR(
          CheckKnown(&code_.attribute(dict), "a result of a private function", {}));
    }
  }
  SHARDCALL_RETURN_IF_ERROR(Enter());
  const CompId comp = AddComputation(name);
  const Block& block = function.regions[0].blocks[0];
  for (size_t k = 0; k < block.arguments.size(); ++k) {
    SHARDCALL_RETURN_IF_ERROR(Parameter(function, comp, k).status());
  }
  ComputationReader reader(this, comp);
  SHARDCALL_ASSIGN_OR_RETURN(const std::vector<InstrId> values, reader.Read(block));
  module_.SetRoot(comp, reader.Root(function, values));
  Leave();
  return read_[found->first] = comp;
}

}  // namespace stablehlo
}  // namespace internal
}  // namespace shardcall
