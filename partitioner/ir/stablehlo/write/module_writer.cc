// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/stablehlo/write/module_writer.h"

#include <array>
#include <string>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/ir/annotation_names.h"
#include "shardcall/partitioner/ir/moved_from.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace stablehlo {
namespace {

bool HasDefaultLayout(const Shape* s) {
  const absl::Span<const int64_t> order = s->minor_to_major();
  for (size_t k = 0; k < order.size(); ++k) {
    if (order[k] != static_cast<int64_t>(order.size() - 1 - k)) return false;
  }
  return true;
}
bool HasTiles(const Shape* s) { return !s->layout_suffix().empty(); }

}  // namespace

ModuleWriter::ModuleWriter(const Module& module, const StablehloOptions& options)
    : m_(module),
      options_(options),
      locations_(module, &pool_),
      function_names_(module.context().arena(), 8),
      values_(static_cast<size_t>(module.num_instructions())) {}

absl::Status ModuleWriter::Cannot(InstrId id, absl::string_view what) const {
  std::string where = "its header";
  if (id.valid()) {
    const Instruction& i = m_.instr(id);
    where = absl::StrCat("%", i.name.empty() ? OpcodeText(i.opcode) : i.name);
  }
  return ToStatus(
      {.code = "E149",
       .message = absl::StrCat("a program has ", what, ", which is not written as StableHLO"),
       .where = std::move(where),
       .fix = "Write it as HLO, or build it from elementwise ops, slices, dots, reductions, custom "
              "calls and collectives"},
      absl::StatusCode::kUnimplemented);
}

absl::StatusOr<std::string> ModuleWriter::Run() {
  SHARDCALL_RETURN_IF_ERROR(CheckHeader());
  function_names_.Reserve("main");
  SHARDCALL_RETURN_IF_ERROR(AddFunction(m_.entry(), "main"));
  // Functions that are called, and those that these call.
  for (size_t k = 0; k < to_write_.size(); ++k) {
    SHARDCALL_RETURN_IF_ERROR(AddFunction(to_write_[k].first, to_write_[k].second));
  }
  WrittenOperation module;
  module.name = pool_.OpName("builtin.module");
  module.location = pool_.UnknownLocation();
  module.attributes = ModuleAttributes();
  module.isolated = true;
  module.regions.resize(1);
  module.regions[0].block.operations = std::move(functions_);
  return WriteBytecode(module, value_types_, pool_);
}

absl::Status ModuleWriter::CheckHeader() const {
  const ModuleHeader& h = m_.header;
  const char* what = h.is_scheduled                ? "a schedule"
                     : h.replica_count > 1         ? "replicas"
                     : !h.debug_attributes.empty() ? "debug attributes"
                                                   : nullptr;
  if (what != nullptr) return Cannot(InstrId(), what);
  for (const AliasEntry& a : h.aliases) {
    if (a.must_alias || !a.parameter_index.empty() || a.output_index.size() > 1) {
      return Cannot(InstrId(), "an alias that must hold, or one within a tuple");
    }
  }
  for (const DonorEntry& d : h.donors) {
    if (!d.parameter_index.empty()) return Cannot(InstrId(), "a donor within a tuple");
  }
  return absl::OkStatus();
}

uint32_t ModuleWriter::ModuleAttributes() {
  const ModuleHeader& h = m_.header;
  Attrs attributes = {{"sym_name", pool_.String(h.name.empty() ? "main" : h.name)}};
  if (h.has_num_partitions) {
    attributes.emplace_back(kMhloNumPartitions, pool_.I32(h.num_partitions));
    attributes.emplace_back(kMhloNumReplicas, pool_.I32(h.replica_count));
  }
  AddFrontend(h.frontend, &attributes);
  AddLayouts(h.entry_parameter_layouts, kMhloParameterLayouts, kMhloParameterTiles, &attributes);
  if (h.entry_result_layout != nullptr) {
    std::vector<const Shape*> leaves;
    for (int k = 0; k < h.entry_result_layout->num_leaves(); ++k) {
      leaves.push_back(h.entry_result_layout->leaf(k));
    }
    AddLayouts(leaves, kMhloResultLayouts, kMhloResultTiles, &attributes);
  }
  return pool_.Dictionary(attributes);
}

// As XLA writes them: only if one is not the default.
void ModuleWriter::AddLayouts(absl::Span<const Shape* const> shapes, absl::string_view layouts,
                              absl::string_view tiles, Attrs* attributes) {
  if (absl::c_all_of(shapes, HasDefaultLayout)) return;
  std::vector<uint32_t> orders, none;
  for (const Shape* s : shapes) {
    orders.push_back(pool_.Index(s->minor_to_major()));
    none.push_back(pool_.Array({}));
  }
  attributes->emplace_back(layouts, pool_.Array(orders));
  attributes->emplace_back(tiles, pool_.Array(none));
}

uint32_t ModuleWriter::FunctionOf(CompId comp) {
  const auto [it, added] = function_of_.try_emplace(comp.value);
  if (added) {
    it->second = function_names_.Take(m_.comp(comp).name);
    to_write_.emplace_back(comp, it->second);
  }
  return pool_.Symbol(it->second);
}

absl::Status ModuleWriter::AddFunction(CompId comp, absl::string_view name) {
  const bool main = comp == m_.entry();
  const Computation& c = m_.comp(comp);
  WrittenOperation function;
  function.name = pool_.OpName("func.func");
  function.location = locations_.Of(m_.instr(c.root).metadata);
  function.isolated = true;
  function.regions.resize(1);
  WrittenBlock& block = function.regions[0].block;
  SHARDCALL_RETURN_IF_ERROR(AddArguments(comp, &block));
  SHARDCALL_RETURN_IF_ERROR(WriteBody(comp, "func.return", &block));
  std::vector<uint32_t> inputs, results;
  for (uint32_t value : block.arguments) inputs.push_back(value_types_[value]);
  for (uint32_t value : values(c.root)) results.push_back(value_types_[value]);
  Attrs attributes = {{"function_type", pool_.TypeAttribute(pool_.Function(inputs, results))},
                      {"sym_name", pool_.String(name)},
                      {"sym_visibility", pool_.String(main ? "public" : "private")}};
  if (main) {
    std::vector<uint32_t> of_arguments;
    for (InstrId p : c.parameters) {
      const int64_t number = static_cast<int64_t>(of_arguments.size());
      SHARDCALL_ASSIGN_OR_RETURN(of_arguments.emplace_back(), ArgumentAttributes(p, number));
    }
    attributes.emplace_back("arg_attrs", pool_.Array(of_arguments));
    SHARDCALL_ASSIGN_OR_RETURN(const uint32_t of_results, ResultAttributes(comp, results.size()));
    attributes.emplace_back("res_attrs", of_results);
  }
  function.attributes = pool_.Dictionary(attributes);
  functions_.push_back(std::move(function));
  return absl::OkStatus();
}

absl::StatusOr<uint32_t> ModuleWriter::ArgumentAttributes(InstrId parameter, int64_t number) {
  const Instruction& i = m_.instr(parameter);
  const ModuleHeader& h = m_.header;
  const size_t k = static_cast<size_t>(number);
  if (i.shape->IsTuple() || !i.as<ParameterAttrs>().replication.empty()) {
    return Cannot(parameter, "a tuple as a parameter, or one that is equal on replicas");
  }
  if (k < h.entry_parameter_layouts.size() && HasTiles(h.entry_parameter_layouts[k])) {
    return Cannot(parameter, "a parameter with tiles or a memory space");
  }
  Attrs attributes;
  Annotate(i, &attributes);
  for (const AliasEntry& a : h.aliases) {
    if (a.parameter != number) continue;
    const int64_t output = a.output_index.empty() ? 0 : a.output_index[0];
    attributes.emplace_back("tf.aliasing_output", pool_.I32(output));
  }
  for (const DonorEntry& d : h.donors) {
    if (d.parameter == number) attributes.emplace_back("jax.buffer_donor", pool_.Bool(true));
  }
  return pool_.Dictionary(attributes);
}

absl::StatusOr<uint32_t> ModuleWriter::ResultAttributes(CompId comp, size_t results) {
  const InstrId root = m_.comp(comp).root;
  const Instruction& i = m_.instr(root);
  const Shape* layout = m_.header.entry_result_layout;
  for (int k = 0; layout != nullptr && k < layout->num_leaves(); ++k) {
    if (HasTiles(layout->leaf(k))) return Cannot(root, "a result with tiles or a memory space");
  }
  std::vector<uint32_t> dicts(results, pool_.Dictionary({}));
  if (i.sharding == nullptr) return pool_.Array(dicts);
  const bool tuple = i.sharding->kind == HloSharding::Kind::kTuple;
  for (size_t k = 0; k < results; ++k) {
    if (tuple && k >= i.sharding->tuple.size()) return Cannot(root, "shardings of some results");
    const HloSharding& own = tuple ? i.sharding->tuple[k] : *i.sharding;
    dicts[k] = pool_.Dictionary({{kMhloSharding, pool_.String(own.Print())}});
  }
  return pool_.Array(dicts);
}

void ModuleWriter::Annotate(const Instruction& i, Attrs* attributes) {
  if (i.sharding != nullptr) {
    attributes->emplace_back(kMhloSharding, pool_.String(i.sharding->Print()));
  }
  AddFrontend(i.frontend, attributes);
}

void ModuleWriter::AddFrontend(const FrontendAttributes* frontend, Attrs* attributes) {
  if (frontend == nullptr) return;
  Attrs entries;
  for (const auto& [key, value] : frontend->entries) {
    entries.emplace_back(key, pool_.String(value));
  }
  attributes->emplace_back(kMhloFrontendAttributes, pool_.Dictionary(entries));
}

}  // namespace stablehlo
}  // namespace internal
}  // namespace shardcall

namespace shardcall {

absl::StatusOr<std::string> WriteStablehloBytecode(const Module& module,
                                                   const StablehloOptions& options) {
  SHARDCALL_RETURN_IF_ERROR(CheckNotMovedFrom(module));
  return stablehlo::ModuleWriter(module, options).Run();
}

}  // namespace shardcall
