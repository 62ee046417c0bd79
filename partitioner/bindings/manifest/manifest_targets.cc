// SPDX-License-Identifier: Apache-2.0
// The rules of a manifest's targets, and what is derived from them.
#include "absl/strings/str_cat.h"
#include "shardcall/kernels/ffi/load/self_registration.h"
#include "shardcall/partitioner/bindings/manifest/manifest_reader.h"
#include "shardcall/partitioner/bindings/manifest/partial_op_names.h"
#include "shardcall/partitioner/check/reference.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall::inline internal::manifest {

absl::Status ManifestReader::ReadFacts(const Json& j, const std::string& where) {
  const std::string name = j["name"].get<std::string>();
  SHARDCALL_ASSIGN_OR_RETURN(CallLimits limits, ReadManifestLimits(j, where, Error()));
  if (!limits.sizes.empty() || !limits.ranges.empty()) {
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
        return ReadFile(Beside(path), "give the path of HLO text, beside the manifest");
      }));
  return targets_.RegisterVjp(name, std::move(vjp));
}

absl::Status ManifestReader::ReadTarget(const Json& j, const std::string& where) {
  if (!j.is_object()) return Bad(where, "an object", TypeOf(j));
  SHARDCALL_RETURN_IF_ERROR(CheckKeys(j, where,
                                      {"name",
                                       "symbol",
                                       "platform",
                                       "api_version",
                                       "traits",
                                       "rule",
                                       "need_replication",
                                       "reduction",
                                       "permutation",
                                       "blocked",
                                       "pad",
                                       "sizes",
                                       "batch_dims",
                                       "backend_config",
                                       "kernel",
                                       "attributes",
                                       "partition_like",
                                       "vjp",
                                       "batching",
                                       "ranges"}));
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
  const bool computed = j.contains("kernel") || j.contains("symbol") ||
                        (library_ != nullptr && RegistersItself(*library_, name));
  if (computed && !j.contains("batch_dims") && !j.contains("rule")) {
    return absl::OkStatus();
  }
  if (j.contains("batch_dims") == j.contains("rule")) {
    return Bad(where, "either \"rule\" or \"batch_dims\"", j.contains("rule") ? "both" : "neither");
  }
  for (const char* key :
       {"need_replication", "reduction", "permutation", "blocked", "pad", "sizes"}) {
    if (j.contains(key) && !j.contains("rule")) {
      return Bad(absl::StrCat(where, ".", key), "a \"rule\" whose factors it is of", "none");
    }
  }
  if (j.contains("batch_dims")) {
    if (!j["batch_dims"].is_number_unsigned() || j["batch_dims"].get<uint64_t>() > 64) {
      return Bad(where + ".batch_dims", "a number of dimensions", j["batch_dims"].dump());
    }
    return targets_.RegisterBatchPartitionable(name, j["batch_dims"].get<int>(), config, source);
  }
  SHARDCALL_ASSIGN_OR_RETURN(RuleText text, ReadRule(j, where));
  return targets_.RegisterRule(name, std::move(text), config, source);
}

absl::StatusOr<RuleText> ManifestReader::ReadRule(const Json& j, const std::string& where) const {
  RuleText text;
  if (!j["rule"].is_string()) return Bad(where + ".rule", "a string", TypeOf(j["rule"]));
  text.rule = j["rule"].get<std::string>();
  SHARDCALL_RETURN_IF_ERROR(Strings(j, "need_replication", where, &text.need_replication));
  SHARDCALL_RETURN_IF_ERROR(Strings(j, "permutation", where, &text.permutation));
  SHARDCALL_RETURN_IF_ERROR(Strings(j, "blocked", where, &text.blocked));
  SHARDCALL_RETURN_IF_ERROR(ReadReduction(j, where, &text));
  for (const char* key : {"pad", "sizes"}) {
    if (!j.contains(key)) continue;
    if (!j[key].is_object()) return Bad(absl::StrCat(where, ".", key), "an object", TypeOf(j[key]));
    for (const auto& [factor, value] : j[key].items()) {
      if (key[0] == 's' && value.is_string()) continue;  // a formula: see ReadManifestLimits
      if (!value.is_number()) {
        return Bad(absl::StrCat(where, ".", key, ".", factor),
                   key[0] == 'p' ? "a number" : "a number, or what it follows from, as in \"4 h\"",
                   TypeOf(value));
      }
      if (key[0] == 'p') {
        text.pad.push_back({factor, value.get<double>()});
      } else {
        text.sizes.push_back({factor, value.get<int64_t>()});
      }
    }
  }
  return text;
}

absl::Status ManifestReader::ReadReference(const Json& j, const std::string& where,
                                           const std::string& name,
                                           const std::string& source) const {
  for (const char* key : {"rule", "batch_dims", "backend_config"}) {
    if (j.contains(key)) return Bad(where, absl::StrCat("no \"", key, "\""), "partition_like");
  }
  SHARDCALL_ASSIGN_OR_RETURN(const std::string path, String(j, "partition_like", where));
  SHARDCALL_ASSIGN_OR_RETURN(
      std::string hlo, ReadFile(Beside(path), "give the path of HLO text, beside the manifest"));
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

}  // namespace shardcall::inline internal::manifest
