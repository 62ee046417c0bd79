// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/stablehlo/read/main_reader.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/ir/annotation_names.h"
#include "shardcall/partitioner/ir/known_targets.h"
#include "shardcall/partitioner/ir/stablehlo/read/computation_reader.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace stablehlo {

absl::Status MainReader::Read() {
  SHARDCALL_RETURN_IF_ERROR(r_.CheckFunction(main_));
  const CompId comp = r_.AddComputation("main");
  module_.set_entry(comp);
  const Block& block = main_.regions[0].blocks[0];
  for (size_t k = 0; k < block.arguments.size(); ++k) {
    SHARDCALL_RETURN_IF_ERROR(ReadArgument(comp, k));
  }
  ComputationReader reader(&r_, comp);
  SHARDCALL_ASSIGN_OR_RETURN(std::vector<InstrId> values, reader.Read(block));
  for (size_t k = 0; k < values.size(); ++k) {
    SHARDCALL_ASSIGN_OR_RETURN(values[k], Result(comp, k, values[k]));
  }
  // A tuple of its own: it gets the shardings of the results.
  InstrId root_id = values.size() == 1 ? values[0] : reader.NewTuple(main_, values);
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
  return ReadLayouts();
}

absl::Status MainReader::ReadArgument(CompId comp, size_t k) {
  SHARDCALL_RETURN_IF_ERROR(r_.Parameter(main_, comp, k).status());
  const Attribute* dicts = code_.Find(main_, "arg_attrs");
  if (dicts == nullptr || k >= dicts->items.size()) return absl::OkStatus();
  const Attribute& dict = code_.attribute(dicts->items[k]);
  if (const Attribute* alias = code_.Find(dict, "tf.aliasing_output"); alias != nullptr) {
    if (alias->kind != Attribute::Kind::kInteger) {
      return ModuleReader::Cannot("an alias of an unknown form");
    }
    AliasEntry entry;
    const Block& block = main_.regions[0].blocks[0];
    const size_t results = block.operations.empty() ? 0 : block.operations.back().operands.size();
    if (results != 1) entry.output_index = {alias->integer};
    entry.parameter = static_cast<int64_t>(k);
    module_.header.aliases.push_back(std::move(entry));
  }
  if (const Attribute* donor = code_.Find(dict, "jax.buffer_donor");
      donor != nullptr && donor->integer != 0) {
    module_.header.donors.push_back({static_cast<int64_t>(k), {}});
  }
  return absl::OkStatus();
}

absl::StatusOr<InstrId> MainReader::Result(CompId comp, size_t k, InstrId value) {
  const Attribute* dicts = code_.Find(main_, "res_attrs");
  if (dicts == nullptr || k >= dicts->items.size()) return value;
  const Attribute& dict = code_.attribute(dicts->items[k]);
  SHARDCALL_RETURN_IF_ERROR(r_.CheckKnown(&dict, "a result", {kMhloSharding, kDialectSharding}));
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
  call.attrs = InternAttributes(r_.context(), attrs);
  call.name = r_.names().Take("result_sharding");
  const InstrId id = module_.Add(comp, call, {value});
  SHARDCALL_ASSIGN_OR_RETURN(const std::string sharding, AnnotationReader::PerValue(*sdy));
  r_.annotations().AddFrontend(id, kSdySharding, sharding);
  return id;
}

absl::Status MainReader::ShardRoot(CompId comp, size_t results, InstrId* root) {
  if (result_shardings_.empty()) return absl::OkStatus();
  if (result_shardings_.size() != results) {
    return ModuleReader::Cannot("GSPMD shardings of some results, but not of all");
  }
  std::vector<HloSharding> parts;
  for (absl::string_view text : result_shardings_) {
    absl::StatusOr<HloSharding> part = ParseHloSharding(text);
    if (!part.ok()) return ModuleReader::Cannot(absl::StrCat("the sharding ", text));
    parts.push_back(*std::move(part));
  }
  HloSharding sharding;
  if (results == 1) {
    sharding = std::move(parts[0]);
    Instruction copy;  // the value itself may have another sharding
    copy.opcode = Opcode::kCopy;
    copy.shape = module_.instr(*root).shape;
    copy.name = r_.names().Take("result");
    *root = module_.Add(comp, copy, {*root});
  } else {
    sharding.kind = HloSharding::Kind::kTuple;
    sharding.tuple = std::move(parts);
  }
  module_.mutable_instr(*root).sharding = InternHloSharding(r_.context(), std::move(sharding));
  return absl::OkStatus();
}

absl::Status MainReader::ReadLayouts() {
  ModuleHeader& h = module_.header;
  SHARDCALL_RETURN_IF_ERROR(
      WithLayouts(kMhloParameterLayouts, kMhloParameterTiles, &h.entry_parameter_layouts));
  std::vector<const Shape*> results;
  const bool tuple = h.entry_result_layout->IsTuple();
  for (int k = 0; k < h.entry_result_layout->num_leaves(); ++k) {
    results.push_back(h.entry_result_layout->leaf(k));
  }
  SHARDCALL_RETURN_IF_ERROR(WithLayouts(kMhloResultLayouts, kMhloResultTiles, &results));
  h.entry_result_layout = tuple ? r_.context().MakeTuple(results) : results[0];
  return absl::OkStatus();
}

absl::Status MainReader::WithLayouts(absl::string_view layouts, absl::string_view tiles,
                                     std::vector<const Shape*>* shapes) {
  if (const Attribute* a = code_.Find(code_.root(), tiles); a != nullptr) {
    for (uint32_t item : a->items) {
      if (!code_.attribute(item).items.empty()) return ModuleReader::Cannot("a layout with tiles");
    }
  }
  const Attribute* a = code_.Find(code_.root(), layouts);
  if (a == nullptr) return absl::OkStatus();
  if (a->items.size() != shapes->size())
    return ModuleReader::Cannot("layouts of some values of its main");
  for (size_t k = 0; k < shapes->size(); ++k) {
    SHARDCALL_ASSIGN_OR_RETURN((*shapes)[k],
                               r_.WithLayout((*shapes)[k], code_.attribute(a->items[k])));
  }
  return absl::OkStatus();
}

}  // namespace stablehlo
}  // namespace internal
}  // namespace shardcall
