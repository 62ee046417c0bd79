// SPDX-License-Identifier: Apache-2.0
// Shardings and frontend attributes of operations and arguments.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "shardcall/partitioner/ir/annotation_names.h"
#include "shardcall/partitioner/ir/stablehlo/read/module_reader.h"
#include "shardcall/partitioner/ir/text/lex/lexer.h"
#include "shardcall/sharding/base/status.h"
#include "shardcall/sharding/rule/sdy_text.h"

namespace shardcall::inline internal::stablehlo {

void ModuleReader::AddFrontend(InstrId id, const Entries& entries) {
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
  i.frontend = InternFrontendAttributes(context(), all);
}

absl::StatusOr<ModuleReader::Entries> ModuleReader::FrontendEntries(
    const Attribute& dictionary) const {
  const auto other = [] { return Cannot("frontend attributes that are no strings, or no names"); };
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

absl::Status ModuleReader::Annotate(const Attribute& dictionary, InstrId id) {
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
      return Cannot(absl::StrCat("a ", name, " of an unknown form"));
    AddFrontend(id, key, a->text);
  }
  if (const Attribute* a = code_.Find(dictionary, kDialectSharding);
      a != nullptr && module_.instr(id).shape->num_leaves() == 0) {
    SHARDCALL_RETURN_IF_ERROR(PlaceOpWithoutResults(a->text, id));
  }
  if (const Attribute* a = code_.Find(dictionary, kMhloSharding); a != nullptr) {
    absl::StatusOr<HloSharding> sharding = ParseHloSharding(a->text);
    if (!sharding.ok()) return Cannot(absl::StrCat("the sharding ", a->text));
    module_.mutable_instr(id).sharding = InternHloSharding(context(), *std::move(sharding));
  }
  return absl::OkStatus();
}

// The annotation of an operation without results, such as jax.debug.print, has no value to be of.
// It says which device runs the operation, which XLA writes as {{maximal device=0}}.
absl::Status ModuleReader::PlaceOpWithoutResults(absl::string_view text, InstrId id) {
  const absl::StatusOr<std::vector<NamedSharding>> named = ParseSdyShardings(text);
  if (!named.ok()) return Cannot(absl::StrCat("the sharding ", text));
  if (named->size() != 1) return absl::OkStatus();
  for (const auto& [name, mesh] : meshes_) {
    if (name != (*named)[0].mesh_name) continue;
    const absl::StatusOr<std::vector<Mesh>> meshes =
        ParseSdyMeshes(absl::StrCat("{", name, " = ", mesh, "}"));
    if (!meshes.ok()) return Cannot(absl::StrCat("the mesh ", mesh));
    const int64_t device = (*meshes)[0].maximal_device;
    if (device < 0) return absl::OkStatus();
    SHARDCALL_ASSIGN_OR_RETURN(HloSharding placed,
                               ParseHloSharding(absl::StrCat("{{maximal device=", device, "}}")));
    module_.mutable_instr(id).sharding = InternHloSharding(context(), std::move(placed));
    return absl::OkStatus();
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> ModuleReader::PerValue(const Attribute& sharding) {
  absl::string_view text = sharding.text;
  if (sharding.kind != Attribute::Kind::kAssembly || !absl::ConsumePrefix(&text, "#sdy.sharding")) {
    return Cannot("a sharding of an unknown form");
  }
  return absl::StrCat("#sdy.sharding_per_value<[", text, "]>");
}

}  // namespace shardcall::inline internal::stablehlo
