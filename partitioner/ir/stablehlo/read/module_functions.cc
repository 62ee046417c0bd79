// SPDX-License-Identifier: Apache-2.0
// Functions as computations: main, and those that are called.
#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/ir/annotation_names.h"
#include "shardcall/partitioner/ir/known_targets.h"
#include "shardcall/partitioner/ir/stablehlo/read/computation_reader.h"
#include "shardcall/partitioner/ir/stablehlo/read/module_reader.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall::inline internal::stablehlo {
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
  SHARDCALL_RETURN_IF_ERROR(Annotate(dict, id));
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

absl::Status ModuleReader::ReadMain(const Operation& function) {
  SHARDCALL_RETURN_IF_ERROR(CheckFunction(function));
  const CompId comp = AddComputation("main");
  module_.set_entry(comp);
  const Block& block = function.regions[0].blocks[0];
  const Attribute* dicts = code_.Find(function, "arg_attrs");
  for (size_t k = 0; k < block.arguments.size(); ++k) {
    SHARDCALL_RETURN_IF_ERROR(Parameter(function, comp, k).status());
    if (dicts == nullptr || k >= dicts->items.size()) continue;
    const Attribute& dict = code_.attribute(dicts->items[k]);
    if (const Attribute* alias = code_.Find(dict, "tf.aliasing_output"); alias != nullptr) {
      if (alias->kind != Attribute::Kind::kInteger) return Cannot("an alias of an unknown form");
      AliasEntry entry;
      const size_t results = block.operations.empty() ? 0 : block.operations.back().operands.size();
      if (results != 1) entry.output_index = {alias->integer};
      entry.parameter = static_cast<int64_t>(k);
      module_.header.aliases.push_back(std::move(entry));
    }
    if (const Attribute* donor = code_.Find(dict, "jax.buffer_donor");
        donor != nullptr && donor->integer != 0) {
      module_.header.donors.push_back({static_cast<int64_t>(k), {}});
    }
  }
  ComputationReader reader(this, comp);
  SHARDCALL_ASSIGN_OR_RETURN(std::vector<InstrId> values, reader.Read(block));
  for (size_t k = 0; k < values.size(); ++k) {
    SHARDCALL_ASSIGN_OR_RETURN(values[k], Result(function, comp, k, values[k]));
  }
  // A tuple of its own: it gets the shardings of the results.
  InstrId root_id = values.size() == 1 ? values[0] : reader.NewTuple(function, values);
  SHARDCALL_RETURN_IF_ERROR(ShardRoot(comp, values.size(), &root_id));
  module_.SetRoot(comp, root_id);
  const Instruction& root = module_.instr(module_.comp(comp).root);
  module_.header.entry_result_layout = root.shape;
  for (InstrId p : module_.comp(comp).parameters) {
    module_.header.entry_parameter_layouts.push_back(module_.instr(p).shape);
  }
  // Aliases in the order of the outputs, as in the text.
  std::sort(
      module_.header.aliases.begin(), module_.header.aliases.end(),
      [](const AliasEntry& a, const AliasEntry& b) { return a.output_index < b.output_index; });
  return absl::OkStatus();
}

absl::Status ModuleReader::ShardRoot(CompId comp, size_t results, InstrId* root) {
  if (result_shardings_.empty()) return absl::OkStatus();
  if (result_shardings_.size() != results) {
    return Cannot("GSPMD shardings of some results, but not of all");
  }
  std::vector<HloSharding> parts;
  for (absl::string_view text : result_shardings_) {
    absl::StatusOr<HloSharding> part = ParseHloSharding(text);
    if (!part.ok()) return Cannot(absl::StrCat("the sharding ", text));
    parts.push_back(*std::move(part));
  }
  HloSharding sharding;
  if (results == 1) {
    sharding = std::move(parts[0]);
    Instruction copy;  // the value itself may have another sharding
    copy.opcode = Opcode::kCopy;
    copy.shape = module_.instr(*root).shape;
    copy.name = names_.Take("result");
    *root = module_.Add(comp, copy, {*root});
  } else {
    sharding.kind = HloSharding::Kind::kTuple;
    sharding.tuple = std::move(parts);
  }
  module_.mutable_instr(*root).sharding = InternHloSharding(context(), std::move(sharding));
  return absl::OkStatus();
}

absl::StatusOr<InstrId> ModuleReader::Result(const Operation& function, CompId comp, size_t k,
                                             InstrId value) {
  const Attribute* dicts = code_.Find(function, "res_attrs");
  if (dicts == nullptr || k >= dicts->items.size()) return value;
  const Attribute& dict = code_.attribute(dicts->items[k]);
  SHARDCALL_RETURN_IF_ERROR(CheckKnown(&dict, "a result", {kMhloSharding, kDialectSharding}));
  const Attribute* sdy = code_.Find(dict, kDialectSharding);
  const Attribute* gspmd = code_.Find(dict, kMhloSharding);
  if (gspmd != nullptr) result_shardings_.push_back(gspmd->text);
  if (sdy == nullptr) return value;
  // As Shardy exports it.
  CustomCallAttrs attrs;
  attrs.target = KnownTargetText(KnownTarget::kFuncResult);
  attrs.has_side_effect = true;
  Instruction call;
  call.opcode = Opcode::kCustomCall;
  call.shape = module_.instr(value).shape;
  call.attrs = InternAttributes(context(), attrs);
  call.name = names_.Take("result_sharding");
  const InstrId id = module_.Add(comp, call, {value});
  SHARDCALL_ASSIGN_OR_RETURN(const std::string sharding, PerValue(*sdy));
  AddFrontend(id, kSdySharding, sharding);
  return id;
}

}  // namespace shardcall::inline internal::stablehlo
