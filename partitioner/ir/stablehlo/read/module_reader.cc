// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/stablehlo/read/module_reader.h"

#include <algorithm>
#include <string>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "shardcall/partitioner/ir/annotation_names.h"
#include "shardcall/partitioner/ir/build/started_calls.h"
#include "shardcall/partitioner/ir/stablehlo/bytecode/bytecode_codes.h"
#include "shardcall/partitioner/ir/stablehlo/bytecode/dense_elements.h"
#include "shardcall/partitioner/ir/stablehlo/bytecode/not_converted.h"
#include "shardcall/partitioner/ir/stablehlo/read/main_reader.h"
#include "shardcall/partitioner/ir/stablehlo/reader.h"
#include "shardcall/partitioner/ir/text/parse/definitions.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace stablehlo {
namespace {

using Kind = Attribute::Kind;
constexpr int64_t kMaxElements = int64_t{1} << 56;  // their bytes fit in an int64
constexpr int kMaxDepth = 64;

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
      annotations_(bytecode, module),
      locations_(bytecode, module),
      names_(*module, UniqueNames::kInstructions),
      comp_names_(*module, UniqueNames::kComputations),
      instr_of_(bytecode.num_values()),
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
    if (op.name == "func.func") {
      const Attribute* name = code_.Find(op, "sym_name");
      if (name != nullptr) functions_[name->text] = &op;
    } else if (op.name != "sdy.mesh") {
      return Cannot(absl::StrCat("an op ", op.name, " beside its functions"));
    }
  }
  const auto main = functions_.find("main");
  if (main == functions_.end()) return Cannot("no function main");
  return MainReader(this, *main->second).Read();
}

absl::StatusOr<const Shape*> ModuleReader::WithLayout(const Shape* shape, const Attribute& layout) {
  if (!shape->IsArray()) return shape;
  const absl::StatusOr<DenseElements> dense = ReadDense(code_, layout);
  if (!dense.ok() || dense->type != ElementType::kS64 || dense->dims.size() != 1 ||
      dense->count != shape->rank()) {
    return Cannot("a layout of an unknown form");
  }
  const std::vector<int64_t> order = dense->Integers();
  for (int64_t d = 0; d < shape->rank(); ++d) {
    if (!absl::c_linear_search(order, d)) return Cannot("a layout that is no order of dimensions");
  }
  return context().MakeArray(shape->element_type(), shape->dims(), order);
}

absl::Status ModuleReader::ReadHeader() {
  const Operation& root = code_.root();
  if (root.attributes >= 0) {
    SHARDCALL_RETURN_IF_ERROR(CheckKnown(
        &code_.attribute(static_cast<uint32_t>(root.attributes)), "a module",
        {kMhloFrontendAttributes, kMhloNumPartitions, kMhloNumReplicas, "sym_name",
         kMhloParameterLayouts, kMhloParameterTiles, kMhloResultLayouts, kMhloResultTiles}));
  }
  const Attribute* name = code_.Find(root, "sym_name");
  module_.header.name = LegalName(name == nullptr ? "" : name->text, "main");
  if (const Attribute* n = code_.Find(root, kMhloNumPartitions); n != nullptr) {
    module_.header.num_partitions = n->integer;
    module_.header.has_num_partitions = true;
  }
  if (const Attribute* n = code_.Find(root, kMhloNumReplicas); n != nullptr) {
    module_.header.replica_count = n->integer;
  }
  for (const Block& block : root.regions[0].blocks) {
    for (const Operation& op : block.operations) {
      if (op.name != "sdy.mesh") continue;
      SHARDCALL_RETURN_IF_ERROR(annotations_.ReadMesh(op));
      // JAX 0.12 writes each mesh in StableHLO's form, too.
      SHARDCALL_RETURN_IF_ERROR(CheckKnown(&code_.attribute(static_cast<uint32_t>(op.attributes)),
                                           "a mesh", {"sym_name", "mesh", "stablehlo.mesh"}));
    }
  }
  return annotations_.ReadHeader();
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
      !t.is_other_integer && sized && elements <= kMaxElements) {
    shape = context().WithDefaultLayout(context().MakeArray(t.element, t.dims));
  } else if (t.kind == Type::Kind::kToken) {
    shape = context().MakeToken();
  }
  if (shape == nullptr) return Cannot("a type with dynamic dimensions, or an unknown one");
  return shapes_[type] = shape;
}

CompId ModuleReader::AddComputation(absl::string_view name) {
  return module_.AddComputation(comp_names_.Take(context().Intern(LegalName(name, "region"))));
}

absl::Status ModuleReader::Enter() {
  if (depth_ >= kMaxDepth) return Cannot("computations within computations in too many levels");
  ++depth_;
  return absl::OkStatus();
}

absl::Status ModuleReader::CheckKnown(const Attribute* dictionary, absl::string_view of,
                                      absl::Span<const absl::string_view> known) const {
  if (dictionary == nullptr) return absl::OkStatus();
  if (dictionary->kind != Kind::kDictionary) {
    return Cannot(absl::StrCat(of, " with attributes of an unknown form"));
  }
  for (size_t k = 0; k + 1 < dictionary->items.size(); k += 2) {
    const absl::string_view name = code_.attribute(dictionary->items[k]).text;
    // What JAX alone reads.
    if (absl::StartsWith(name, "jax.") || absl::c_linear_search(known, name)) continue;
    return Cannot(absl::StrCat(of, " with ", name));
  }
  return absl::OkStatus();
}

}  // namespace stablehlo
}  // namespace internal
}  // namespace shardcall

namespace shardcall {
inline namespace internal {

absl::StatusOr<Module> ReadStablehloBytecode(absl::string_view bytes,
                                             std::shared_ptr<Context> context) {
  SHARDCALL_ASSIGN_OR_RETURN(const stablehlo::Bytecode code, stablehlo::Bytecode::Read(bytes));
  Module module(std::move(context));
  SHARDCALL_RETURN_IF_ERROR(stablehlo::ModuleReader(code, &module).Run());
  return WithStartedOps(std::move(module));
}

}  // namespace internal
}  // namespace shardcall
