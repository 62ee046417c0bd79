// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/stablehlo/module_reader.h"

#include <algorithm>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "shardcall/partitioner/ir/stablehlo/computation_reader.h"
#include "shardcall/partitioner/ir/stablehlo/reader.h"
#include "shardcall/partitioner/ir/text/parser_internal.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall::stablehlo {
namespace {

using Kind = Attribute::Kind;
constexpr int kMaxCallDepth = 64;
constexpr int64_t kMaxElements = int64_t{1} << 56;  // their bytes fit in an int64

void Walk(const Region& region, const auto& visit) {
  for (const Block& b : region.blocks) {
    for (const Operation& op : b.operations) {
      visit(op);
      for (const Region& inner : op.regions) Walk(inner, visit);
    }
  }
}

}  // namespace

ModuleReader::ModuleReader(const Bytecode& bytecode, Module* module)
    : code_(bytecode),
      module_(*module),
      locations_(bytecode, module),
      names_(*module, UniqueNames::kInstructions),
      comp_names_(*module, UniqueNames::kComputations),
      now_(bytecode.num_values()),
      givers_(bytecode.num_values()) {}

std::string ModuleReader::LegalName(absl::string_view text, absl::string_view otherwise) {
  std::string out;
  for (char c : text) {
    const bool legal = absl::ascii_isalnum(c) || c == '.' || c == '-';
    if (legal || !out.empty()) out.push_back(legal ? c : '_');  // none at the beginning
  }
  while (!out.empty() && (out.back() == '_' || out.back() == '.')) out.pop_back();
  if (out.empty()) return std::string(otherwise);
  if (absl::ascii_isdigit(out[0])) out.insert(0, "_");
  if (hlo_text::IsReservedName(out)) out += "_";
  return out;
}

absl::Status ModuleReader::Cannot(absl::string_view what) { return StablehloNotConverted(what); }

absl::Status ModuleReader::Run() {
  SHARDCALL_RETURN_IF_ERROR(ReadHeader());
  const Region& body = code_.root().regions[0];
  Walk(body, [&](const Operation& op) {
    for (uint32_t value : op.results) givers_[value] = &op;
  });
  if (body.blocks.size() != 1) return Cannot("a module of several blocks");
  for (const Operation& op : body.blocks[0].operations) {
    if (op.name == "sdy.mesh") {
      SHARDCALL_RETURN_IF_ERROR(ReadMesh(op));
    } else if (op.name == "func.func") {
      const Attribute* name = code_.Find(op, "sym_name");
      if (name != nullptr) functions_[name->text] = &op;
    } else {
      return Cannot(absl::StrCat("an op ", op.name, " beside its functions"));
    }
  }
  if (!meshes_.empty()) {
    // As Shardy exports them: {a = #sdy.mesh<..>, b = ..}.
    std::string all;
    for (const auto& [name, mesh] : meshes_) {
      absl::StrAppend(&all, all.empty() ? "{" : ", ", name, " = ", mesh);
    }
    all += "}";
    const std::pair<absl::string_view, absl::string_view> entry = {"xla.sdy.meshes", all};
    module_.header.frontend = InternFrontendAttributes(context(), {&entry, 1});
  }
  const auto main = functions_.find("main");
  if (main == functions_.end()) return Cannot("no function main");
  return ReadMain(*main->second);
}

absl::Status ModuleReader::ReadHeader() {
  const Operation& root = code_.root();
  const Attribute* name = code_.Find(root, "sym_name");
  module_.header.name = name == nullptr ? "main" : std::string(name->text);
  if (const Attribute* n = code_.Find(root, "mhlo.num_partitions"); n != nullptr) {
    module_.header.num_partitions = n->integer;
    module_.header.has_num_partitions = true;
  }
  if (const Attribute* n = code_.Find(root, "mhlo.num_replicas"); n != nullptr) {
    module_.header.replica_count = n->integer;
  }
  return absl::OkStatus();
}

absl::Status ModuleReader::ReadMesh(const Operation& op) {
  const Attribute* name = code_.Find(op, "sym_name");
  const Attribute* mesh = code_.Find(op, "mesh");
  if (name == nullptr || mesh == nullptr || mesh->kind != Kind::kAssembly) {
    return Cannot("a mesh of an unknown form");
  }
  meshes_.emplace_back(std::string(name->text), std::string(mesh->text));
  return absl::OkStatus();
}

absl::StatusOr<const Shape*> ModuleReader::ShapeOf(uint32_t type) {
  if (const auto it = shapes_.find(type); it != shapes_.end()) return it->second;
  const Type& t = code_.type(type);
  const Shape* shape = nullptr;
  int64_t elements = 1;
  const bool sized = std::none_of(t.dims.begin(), t.dims.end(), [&](int64_t d) {
    return d < 0 || __builtin_mul_overflow(elements, std::max<int64_t>(d, 1), &elements);
  });
  if (t.kind == Type::Kind::kTensor && t.element != ElementType::kInvalid && !t.has_encoding &&
      sized && elements <= kMaxElements) {
    shape = context().WithDefaultLayout(context().MakeArray(t.element, t.dims));
  } else if (t.kind == Type::Kind::kToken) {
    shape = context().MakeToken();
  } else if (t.kind == Type::Kind::kTuple) {
    std::vector<const Shape*> elements;
    for (uint32_t e : t.inputs) {
      SHARDCALL_ASSIGN_OR_RETURN(const Shape* s, ShapeOf(e));
      elements.push_back(s);
    }
    shape = context().MakeTuple(elements);
  }
  if (shape == nullptr) return Cannot("a type with dynamic dimensions, or an unknown one");
  return shapes_[type] = shape;
}

CompId ModuleReader::AddComputation(absl::string_view name) {
  return module_.AddComputation(comp_names_.Take(context().Intern(name)));
}

void ModuleReader::AddFrontend(InstrId id, absl::string_view key, absl::string_view value) {
  Instruction& i = module_.mutable_instr(id);
  std::vector<std::pair<absl::string_view, absl::string_view>> entries;
  if (i.frontend != nullptr) entries.assign(i.frontend->entries.begin(), i.frontend->entries.end());
  entries.emplace_back(key, value);
  std::sort(entries.begin(), entries.end());
  i.frontend = InternFrontendAttributes(context(), entries);
}

absl::Status ModuleReader::Annotate(const Attribute& dictionary, InstrId id) {
  if (const Attribute* a = code_.Find(dictionary, "mhlo.frontend_attributes"); a != nullptr) {
    for (size_t k = 0; k + 1 < a->items.size(); k += 2) {
      AddFrontend(id, code_.attribute(a->items[k]).text, code_.attribute(a->items[k + 1]).text);
    }
  }
  if (const Attribute* a = code_.Find(dictionary, "sdy.sharding"); a != nullptr) {
    if (a->kind != Kind::kAssembly) return Cannot("a sharding of an unknown form");
    AddFrontend(id, "xla.sdy.sharding", a->text);
  }
  if (const Attribute* a = code_.Find(dictionary, "sdy.sharding_rule"); a != nullptr) {
    AddFrontend(id, "xla.sdy.sharding_rule", a->text);
  }
  if (const Attribute* a = code_.Find(dictionary, "mhlo.sharding"); a != nullptr) {
    SHARDCALL_ASSIGN_OR_RETURN(HloSharding sharding, ParseHloSharding(a->text));
    module_.mutable_instr(id).sharding = InternHloSharding(context(), std::move(sharding));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> ModuleReader::PerValue(const Attribute& sharding) {
  absl::string_view text = sharding.text;
  if (sharding.kind != Kind::kAssembly || !absl::ConsumePrefix(&text, "#sdy.sharding")) {
    return Cannot("a sharding of an unknown form");
  }
  return absl::StrCat("#sdy.sharding_per_value<[", text, "]>");
}

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
  Set(value, id);
  return id;
}

absl::StatusOr<CompId> ModuleReader::Function(absl::string_view name) {
  if (const auto it = read_.find(name); it != read_.end()) return it->second;
  const auto found = functions_.find(name);
  if (found == functions_.end() || depth_ >= kMaxCallDepth) {
    return Cannot(absl::StrCat("a call of ", name, ", which it lacks"));
  }
  const Operation& function = *found->second;
  if (function.regions.empty() || function.regions[0].blocks.size() != 1) {
    return Cannot("a function without one block");
  }
  ++depth_;
  const CompId comp = AddComputation(name);
  const Block& block = function.regions[0].blocks[0];
  for (size_t k = 0; k < block.arguments.size(); ++k) {
    SHARDCALL_RETURN_IF_ERROR(Parameter(function, comp, k).status());
  }
  ComputationReader reader(this, comp);
  SHARDCALL_ASSIGN_OR_RETURN(const std::vector<InstrId> values, reader.Read(block));
  module_.SetRoot(comp, reader.Root(function, values));
  --depth_;
  return read_[found->first] = comp;
}

absl::Status ModuleReader::ReadMain(const Operation& function) {
  if (function.regions.empty() || function.regions[0].blocks.size() != 1) {
    return Cannot("a main without one block");
  }
  const CompId comp = AddComputation("main");
  module_.set_entry(comp);
  const Block& block = function.regions[0].blocks[0];
  const Attribute* dicts = code_.Find(function, "arg_attrs");
  for (size_t k = 0; k < block.arguments.size(); ++k) {
    SHARDCALL_ASSIGN_OR_RETURN(const InstrId id, Parameter(function, comp, k));
    if (dicts == nullptr || k >= dicts->items.size()) continue;
    const Attribute& dict = code_.attribute(dicts->items[k]);
    SHARDCALL_RETURN_IF_ERROR(Annotate(dict, id));
    if (code_.Find(dict, "mhlo.memory_kind") != nullptr ||
        code_.Find(dict, "mhlo.layout_mode") != nullptr) {
      return Cannot("an argument with a memory kind or a layout");
    }
    if (const Attribute* alias = code_.Find(dict, "tf.aliasing_output"); alias != nullptr) {
      AliasEntry entry;
      const size_t results = block.operations.empty() ? 0 : block.operations.back().operands.size();
      if (results != 1) entry.output_index = {alias->integer};
      entry.parameter = static_cast<int64_t>(k);
      module_.header.aliases.push_back(std::move(entry));
    }
    if (code_.Find(dict, "jax.buffer_donor") != nullptr) {
      module_.header.donors.push_back({static_cast<int64_t>(k), {}});
    }
  }
  ComputationReader reader(this, comp);
  SHARDCALL_ASSIGN_OR_RETURN(std::vector<InstrId> values, reader.Read(block));
  for (size_t k = 0; k < values.size(); ++k) {
    SHARDCALL_ASSIGN_OR_RETURN(values[k], Result(function, comp, k, values[k]));
  }
  InstrId root_id = reader.Root(function, values);
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
    SHARDCALL_ASSIGN_OR_RETURN(HloSharding part, ParseHloSharding(text));
    parts.push_back(std::move(part));
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
  if (code_.Find(dict, "mhlo.memory_kind") != nullptr ||
      code_.Find(dict, "mhlo.layout_mode") != nullptr) {
    return Cannot("a result with a memory kind or a layout");
  }
  const Attribute* sdy = code_.Find(dict, "sdy.sharding");
  const Attribute* gspmd = code_.Find(dict, "mhlo.sharding");
  if (gspmd != nullptr) result_shardings_.push_back(gspmd->text);
  if (sdy == nullptr) return value;
  // As Shardy exports it.
  CustomCallAttrs attrs;
  attrs.target = "xla.sdy.FuncResultSharding";
  attrs.has_side_effect = true;
  Instruction call;
  call.opcode = Opcode::kCustomCall;
  call.shape = module_.instr(value).shape;
  call.attrs = InternAttributes(context(), attrs);
  call.name = names_.Take("result_sharding");
  const InstrId id = module_.Add(comp, call, {value});
  SHARDCALL_ASSIGN_OR_RETURN(const std::string sharding, PerValue(*sdy));
  AddFrontend(id, "xla.sdy.sharding", sharding);
  return id;
}

}  // namespace shardcall::stablehlo

namespace shardcall::inline internal {

absl::Status StablehloNotConverted(absl::string_view what) {
  return ToStatus({.code = "E035",
                   .message = absl::StrCat("this StableHLO is not converted: it has ", what),
                   .fix = "Convert it to HLO by a PJRT plugin: --converter=FILE"},
                  absl::StatusCode::kUnimplemented);
}

absl::StatusOr<Module> ReadStablehloBytecode(absl::string_view bytes,
                                             std::shared_ptr<Context> context) {
  SHARDCALL_ASSIGN_OR_RETURN(const stablehlo::Bytecode code, stablehlo::Bytecode::Read(bytes));
  Module module(std::move(context));
  SHARDCALL_RETURN_IF_ERROR(stablehlo::ModuleReader(code, &module).Run());
  return module;
}

}  // namespace shardcall::inline internal
