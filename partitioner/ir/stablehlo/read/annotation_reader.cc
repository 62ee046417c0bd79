// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/stablehlo/read/annotation_reader.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "shardcall/partitioner/ir/analysis/side_effects.h"
#include "shardcall/partitioner/ir/stablehlo/bytecode/attribute_text.h"
#include "shardcall/partitioner/ir/stablehlo/bytecode/not_converted.h"
#include "shardcall/partitioner/ir/text/lex/lexer.h"
#include "shardcall/sharding/base/status.h"
#include "shardcall/sharding/rule/sdy_text.h"

namespace shardcall {
inline namespace internal {
namespace stablehlo {

absl::Status AnnotationReader::ReadMesh(const Operation& op) {
  const Attribute* name = code_.Find(op, "sym_name");
  const Attribute* mesh = code_.Find(op, "mesh");
  if (name == nullptr || mesh == nullptr || mesh->kind != Attribute::Kind::kAssembly) {
    return StablehloNotConverted("a mesh of an unknown form");
  }
  meshes_.emplace_back(SymbolName(name->text), std::string(mesh->text));
  return absl::OkStatus();
}

absl::StatusOr<Mesh> AnnotationReader::MeshNamed(absl::string_view name) const {
  for (const auto& [mesh_name, mesh] : meshes_) {
    if (mesh_name != name) continue;
    absl::StatusOr<std::vector<Mesh>> meshes =
        ParseSdyMeshes(absl::StrCat("{", mesh_name, " = ", mesh, "}"));
    if (!meshes.ok()) return StablehloNotConverted(absl::StrCat("the mesh ", mesh));
    return std::move((*meshes)[0]);
  }
  return StablehloNotConverted(absl::StrCat("a mesh @", name, " that is not there"));
}

absl::Status AnnotationReader::ReadHeader() {
  Entries entries;
  if (const Attribute* a = code_.Find(code_.root(), kMhloFrontendAttributes); a != nullptr) {
    SHARDCALL_ASSIGN_OR_RETURN(entries, FrontendEntries(*a));
  }
  std::string meshes;  // as Shardy exports them: {a = #sdy.mesh<..>, b = ..}
  for (const auto& [mesh_name, mesh] : meshes_) {
    absl::StrAppend(&meshes, meshes.empty() ? "{" : ", ", mesh_name, " = ", mesh);
  }
  if (!meshes.empty()) {
    meshes += "}";
    std::erase_if(entries, [](const auto& e) { return e.first == kSdyMeshes; });
    entries.emplace_back(kSdyMeshes, meshes);
  }
  std::sort(entries.begin(), entries.end());
  if (!entries.empty()) {
    module_.header.frontend = InternFrontendAttributes(module_.context(), entries);
  }
  return absl::OkStatus();
}

void AnnotationReader::AddFrontend(InstrId id, const Entries& entries) {
  Instruction& i = module_.mutable_instr(id);
  Entries all = entries;
  const auto by_name = [](const auto& a, const auto& b) { return a.first < b.first; };
  if (i.frontend != nullptr) {
    all.insert(all.end(), i.frontend->entries.begin(), i.frontend->entries.end());
  }
  std::stable_sort(all.begin(), all.end(), by_name);  // new entries stand before old ones
  all.erase(std::unique(all.begin(), all.end(),
                        [](const auto& a, const auto& b) { return a.first == b.first; }),
            all.end());
  i.frontend = InternFrontendAttributes(module_.context(), all);
}

absl::StatusOr<AnnotationReader::Entries> AnnotationReader::FrontendEntries(
    const Attribute& dictionary) const {
  const auto other = [] {
    return StablehloNotConverted("frontend attributes that are no strings, or no names");
  };
  if (dictionary.kind != Attribute::Kind::kDictionary) return other();
  Entries out;
  for (size_t k = 0; k + 1 < dictionary.items.size(); k += 2) {
    const Attribute& value = code_.attribute(dictionary.items[k + 1]);
    const absl::string_view key = code_.attribute(dictionary.items[k]).text;
    if (value.kind != Attribute::Kind::kString || !hlo_text::IsName(key)) return other();
    out.emplace_back(key, value.text);
  }
  return out;
}

absl::Status AnnotationReader::Annotate(const Attribute& dictionary, InstrId id) {
  Entries entries;
  if (const Attribute* a = code_.Find(dictionary, kMhloFrontendAttributes); a != nullptr) {
    SHARDCALL_ASSIGN_OR_RETURN(entries, FrontendEntries(*a));
  }
  if (!entries.empty()) AddFrontend(id, entries);
  // What the operation itself says stands in the place of what its frontend attributes say.
  for (const auto& [name, key] : {std::pair(kDialectSharding, kSdySharding),
                                  std::pair(kDialectShardingRule, kSdyShardingRule)}) {
    const Attribute* a = code_.Find(dictionary, name);
    if (a == nullptr) continue;
    if (a->kind != Attribute::Kind::kAssembly)
      return StablehloNotConverted(absl::StrCat("a ", name, " of an unknown form"));
    AddFrontend(id, key, a->text);
  }
  if (const Attribute* a = code_.Find(dictionary, kDialectSharding);
      a != nullptr && !ResultsInArray(module_.instr(id))) {
    SHARDCALL_RETURN_IF_ERROR(PlaceOpWithoutArrays(a->text, id));
  }
  if (const Attribute* a = code_.Find(dictionary, kMhloSharding); a != nullptr) {
    absl::StatusOr<HloSharding> sharding = ParseHloSharding(a->text);
    if (!sharding.ok()) return StablehloNotConverted(absl::StrCat("the sharding ", a->text));
    module_.mutable_instr(id).sharding = InternHloSharding(module_.context(), *std::move(sharding));
  }
  return absl::OkStatus();
}

// The annotation of an operation without results, or with a token alone, such as jax.debug.print,
// has no value to be of. It says which device runs the operation, which XLA writes as
// {{maximal device=0}}, and as {maximal device=0} for a token.
absl::Status AnnotationReader::PlaceOpWithoutArrays(absl::string_view text, InstrId id) {
  const absl::StatusOr<std::vector<NamedSharding>> named = ParseSdyShardings(text);
  if (!named.ok()) return StablehloNotConverted(absl::StrCat("the sharding ", text));
  if (named->size() != 1) return absl::OkStatus();
  const auto is_named = [&](const auto& mesh) { return mesh.first == (*named)[0].mesh_name; };
  if (std::none_of(meshes_.begin(), meshes_.end(), is_named)) return absl::OkStatus();
  SHARDCALL_ASSIGN_OR_RETURN(const Mesh mesh, MeshNamed((*named)[0].mesh_name));
  if (mesh.maximal_device < 0) return absl::OkStatus();
  HloSharding placed;
  placed.kind = HloSharding::Kind::kMaximal;
  placed.device = mesh.maximal_device;
  const Shape& shape = *module_.instr(id).shape;
  if (shape.IsTuple()) {
    HloSharding each;
    each.kind = HloSharding::Kind::kTuple;
    each.tuple.assign(std::max(1, shape.num_leaves()), placed);
    placed = std::move(each);
  }
  module_.mutable_instr(id).sharding = InternHloSharding(module_.context(), std::move(placed));
  return absl::OkStatus();
}

absl::StatusOr<std::string> AnnotationReader::PerValue(const Attribute& sharding) {
  absl::string_view text = sharding.text;
  if (sharding.kind != Attribute::Kind::kAssembly || !absl::ConsumePrefix(&text, "#sdy.sharding")) {
    return StablehloNotConverted("a sharding of an unknown form");
  }
  return absl::StrCat("#sdy.sharding_per_value<[", text, "]>");
}

}  // namespace stablehlo
}  // namespace internal
}  // namespace shardcall
