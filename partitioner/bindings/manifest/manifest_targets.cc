// SPDX-License-Identifier: Apache-2.0
// The rules of a manifest's targets, and what is derived from them.
#include <array>
#include <set>

#include "absl/strings/str_cat.h"
#include "shardcall/kernels/ffi/load/self_registration.h"
#include "shardcall/partitioner/bindings/manifest/manifest_reader.h"
#include "shardcall/partitioner/bindings/manifest/partial_op_names.h"
#include "shardcall/partitioner/check/reference.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace manifest {
namespace {

// What one rule says: keys of a target, and of an entry of its "rules".
constexpr std::array<absl::string_view, 10> kRuleKeys = {
    "rule", "need_replication", "reduction", "permutation", "blocked", "pad", "sizes", "types",
    "when", "attributes"};

}  // namespace

absl::Status ManifestReader::ReadFacts(const Json& j, const std::string& where) {
  const std::string name = j["name"].get<std::string>();
  SHARDCALL_ASSIGN_OR_RETURN(CallLimits limits, ReadManifestLimits(j, where, Error()));
  if (limits != CallLimits()) {
    SHARDCALL_RETURN_IF_ERROR(targets_.RegisterCallLimits(name, std::move(limits)));
  }
  if (j.contains("batching")) {
    SHARDCALL_ASSIGN_OR_RETURN(BatchingSpec batching,
                               ReadManifestBatching(j["batching"], where + ".batching", Error()));
    SHARDCALL_RETURN_IF_ERROR(targets_.RegisterBatching(name, std::move(batching)));
  }
  if (!j.contains("vjp")) return absl::OkStatus();
  SHARDCALL_ASSIGN_OR_RETURN(
      VjpSpec vjp, ReadManifestVjp(j["vjp"], where + ".vjp", Error(), [this](const auto& path) {
        return ReadFile(Beside(path), "give the path of HLO text, beside the manifest", max_input_);
      }));
  return targets_.RegisterVjp(name, std::move(vjp));
}

absl::Status ManifestReader::ReadTarget(const Json& j, const std::string& where) {
  if (!j.is_object()) return Bad(where, "an object", TypeOf(j));
  std::set<std::string> keys = {"name",     "symbol", "platform",       "api_version",
                                "traits",   "rules",  "batch_dims",     "backend_config",
                                "kernel",   "vjp",    "partition_like", "attributes",
                                "batching", "ranges", "scratch"};
  keys.insert(kRuleKeys.begin(), kRuleKeys.end());
  SHARDCALL_RETURN_IF_ERROR(CheckKeys(j, where, keys));
  SHARDCALL_ASSIGN_OR_RETURN(const std::string name, String(j, "name", where));
  std::string config;
  if (j.contains("backend_config")) {
    if (!j["backend_config"].is_string()) {
      return Bad(where + ".backend_config", "a string", TypeOf(j["backend_config"]));
    }
    config = j["backend_config"].get<std::string>();
  }
  const std::string source = absl::StrCat("manifest ", file_);
  SHARDCALL_RETURN_IF_ERROR(ReadKernel(j, where, name, config, source));
  SHARDCALL_RETURN_IF_ERROR(ReadHandler(j, where, name, config));
  if (j.contains("partition_like")) return ReadReference(j, where, name, source);
  const int kinds = j.contains("rule") + j.contains("rules") + j.contains("batch_dims");
  const bool computed = j.contains("kernel") || j.contains("symbol") ||
                        (library_ != nullptr && RegistersItself(*library_, name));
  if (kinds > 1) return Bad(where, "one of \"rule\", \"rules\" and \"batch_dims\"", "several");
  for (const absl::string_view key : kRuleKeys) {
    const bool of_kernel = key == "attributes" && j.contains("kernel");
    if (key == "rule" || !j.contains(key) || j.contains("rule") || of_kernel) continue;
    return Bad(absl::StrCat(where, ".", key), "a \"rule\" whose factors it is of", "none");
  }
  if (j.contains("rules")) {
    SHARDCALL_ASSIGN_OR_RETURN(std::vector<RuleAlternative> rules,
                               ReadRules(j["rules"], where + ".rules"));
    return targets_.RegisterRules(name, std::move(rules), config, source);
  }
  if (j.contains("rule")) {
    std::vector<RuleAlternative> one(1);
    SHARDCALL_ASSIGN_OR_RETURN(one[0], ReadRule(j, where));
    return targets_.RegisterRules(name, std::move(one), config, source);
  }
  if (!j.contains("batch_dims")) {
    if (computed) return absl::OkStatus();
    return Bad(where, "one of \"rule\", \"rules\" and \"batch_dims\"", "neither");
  }
  if (!j["batch_dims"].is_number_unsigned() || j["batch_dims"].get<uint64_t>() > 64) {
    return Bad(where + ".batch_dims", "a number of dimensions", j["batch_dims"].dump());
  }
  return targets_.RegisterBatchPartitionable(name, j["batch_dims"].get<int>(), config, source);
}

absl::StatusOr<std::vector<RuleAlternative>> ManifestReader::ReadRules(
    const Json& list, const std::string& where) const {
  if (!list.is_array() || list.empty()) {
    return Bad(where, "a list of rules", list.is_array() ? "an empty one" : TypeOf(list));
  }
  std::vector<RuleAlternative> out;
  for (size_t k = 0; k < list.size(); ++k) {
    const std::string at = absl::StrCat(where, "[", k, "]");
    Json entry = list[k];
    if (entry.is_string()) entry = Json{{"rule", list[k]}};
    if (!entry.is_object()) {
      return Bad(at, "a rule, or an object with the keys of one", TypeOf(entry));
    }
    SHARDCALL_RETURN_IF_ERROR(CheckKeys(entry, at, {kRuleKeys.begin(), kRuleKeys.end()}));
    if (!entry.contains("rule")) return Bad(at, "a \"rule\"", "none");
    if (entry.contains("attributes") && entry["attributes"].is_string()) {
      return Bad(at + ".attributes", "an object with formulas, as in {\"grid_x\": \"m / 16\"}",
                 "text, which a target with a \"kernel\" has");
    }
    SHARDCALL_ASSIGN_OR_RETURN(out.emplace_back(), ReadRule(entry, at));
  }
  return out;
}

absl::StatusOr<RuleAlternative> ManifestReader::ReadRule(const Json& j,
                                                         const std::string& where) const {
  RuleAlternative out;
  RuleText& text = out.text;
  if (!j["rule"].is_string()) {
    return Bad(where + ".rule",
               j["rule"].is_array() ? "a string, or \"rules\" for a list" : "a string",
               TypeOf(j["rule"]));
  }
  text.rule = j["rule"].get<std::string>();
  SHARDCALL_RETURN_IF_ERROR(Strings(j, "need_replication", where, &text.need_replication));
  SHARDCALL_RETURN_IF_ERROR(Strings(j, "permutation", where, &text.permutation));
  SHARDCALL_RETURN_IF_ERROR(Strings(j, "blocked", where, &text.blocked));
  SHARDCALL_RETURN_IF_ERROR(ReadReduction(j, where, &text));
  for (const char* key : {"pad", "sizes"}) {
    if (!j.contains(key) || j[key].is_object()) continue;
    return Bad(absl::StrCat(where, ".", key), "an object", TypeOf(j[key]));
  }
  const Json pads = j.value("pad", Json::object()), sizes = j.value("sizes", Json::object());
  for (const auto& [factor, value] : pads.items()) {
    SHARDCALL_ASSIGN_OR_RETURN(
        const double pad, ReadManifestPad(value, absl::StrCat(where, ".pad.", factor), Error()));
    text.pad.push_back({factor, pad});
  }
  for (const auto& [factor, value] : sizes.items()) {
    if (value.is_string()) continue;  // a formula: see ReadManifestLimits
    SHARDCALL_ASSIGN_OR_RETURN(
        const int64_t size,
        ReadManifestSize(value, absl::StrCat(where, ".sizes.", factor), Error()));
    text.sizes.push_back({factor, size});
  }
  SHARDCALL_ASSIGN_OR_RETURN(out.types, String(j, "types", where, ""));
  if (j.contains("when")) {
    SHARDCALL_ASSIGN_OR_RETURN(out.when,
                               ReadManifestConditions(j["when"], where + ".when", Error()));
  }
  SHARDCALL_ASSIGN_OR_RETURN(out.attributes, ReadManifestAttributes(j, where, Error()));
  return out;
}

absl::Status ManifestReader::ReadReference(const Json& j, const std::string& where,
                                           const std::string& name,
                                           const std::string& source) const {
  for (const char* key : {"rule", "rules", "batch_dims", "backend_config"}) {
    if (j.contains(key)) return Bad(where, absl::StrCat("no \"", key, "\""), "partition_like");
  }
  SHARDCALL_ASSIGN_OR_RETURN(const std::string path, String(j, "partition_like", where));
  SHARDCALL_ASSIGN_OR_RETURN(
      std::string hlo,
      ReadFile(Beside(path), "give the path of HLO text, beside the manifest", max_input_));
  return In(RegisterPartitionLike(name, std::move(hlo), &targets_, source), Beside(path));
}

absl::Status ManifestReader::ReadReduction(const Json& j, const std::string& where,
                                           RuleText* text) const {
  if (!j.contains("reduction")) return absl::OkStatus();
  const Json& r = j["reduction"];
  if (!r.is_object()) return Bad(where + ".reduction", "an object", TypeOf(r));
  for (const auto& [factor, op] : r.items()) {
    PartialOp value;
    if (!op.is_string() || !PartialOpFromName(op.get<std::string>(), &value)) {
      return Bad(absl::StrCat(where, ".reduction.", factor), kPartialOpNames, op.dump());
    }
    text->reduction.push_back({factor, value});
  }
  return absl::OkStatus();
}

}  // namespace manifest
}  // namespace internal
}  // namespace shardcall
