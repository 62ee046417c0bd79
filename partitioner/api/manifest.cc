// SPDX-License-Identifier: Apache-2.0
#include "partitioner/api/manifest.h"

#include <sys/stat.h>

#include <fstream>
#include <memory>
#include <set>
#include <sstream>

#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "sharding/status.h"

namespace shardcall {
namespace {

using Json = nlohmann::ordered_json;

class ManifestReader {
 public:
  ManifestReader(absl::string_view file_name, TargetRegistry* targets, HandlerRegistry* handlers)
      : file_(file_name), targets_(*targets), handlers_(handlers) {}

  absl::Status Read(const Json& j) {
    if (!j.is_object()) return Bad("", "a JSON object", TypeOf(j));
    SHARDCALL_RETURN_IF_ERROR(CheckKeys(j, "", {"library", "targets"}));
    if (j.contains("library")) return NeedsLoader("library");
    if (!j.contains("targets")) return Bad("", "a list \"targets\"", "none");
    const Json& list = j["targets"];
    if (!list.is_array()) return Bad("targets", "a list", TypeOf(list));
    for (size_t i = 0; i < list.size(); ++i) {
      SHARDCALL_RETURN_IF_ERROR(ReadTarget(list[i], absl::StrCat("targets[", i, "]")));
    }
    return absl::OkStatus();
  }

 private:
  static std::string TypeOf(const Json& j) { return j.type_name(); }

  absl::Status Bad(absl::string_view where, std::string expected, std::string found) const {
    Diagnostic d;
    d.code = "E141";
    d.message = "the manifest cannot be used";
    d.where = where.empty() ? file_ : absl::StrCat(file_, " ", where);
    d.expected = std::move(expected);
    d.found = std::move(found);
    d.fix = "see shardcall partition --help for the form of a manifest";
    return ToStatus(d);
  }
  absl::Status NeedsLoader(absl::string_view key) const {
    Diagnostic d;
    d.code = "E142";
    d.message = absl::StrCat("the manifest has \"", key,
                             "\", and this version loads rules only, no libraries");
    d.where = file_;
    d.fix = "keep the rules in the manifest and link the handler into a program of your own "
            "(HandlerRegistry::Register)";
    return ToStatus(d, absl::StatusCode::kUnimplemented);
  }
  absl::Status CheckKeys(const Json& j, absl::string_view where,
                         const std::set<std::string>& known) const {
    for (const auto& [key, value] : j.items()) {
      if (known.count(key)) continue;
      std::string names;
      for (const std::string& k : known) absl::StrAppend(&names, names.empty() ? "" : ", ", k);
      return Bad(where, absl::StrCat("keys among ", names), absl::StrCat("\"", key, "\""));
    }
    return absl::OkStatus();
  }
  absl::Status Strings(const Json& j, const char* key, absl::string_view where,
                       std::vector<std::string>* out) const {
    if (!j.contains(key)) return absl::OkStatus();
    if (!j[key].is_array()) return Bad(absl::StrCat(where, ".", key), "a list", TypeOf(j[key]));
    for (const Json& s : j[key]) {
      if (!s.is_string()) return Bad(absl::StrCat(where, ".", key), "strings", TypeOf(s));
      out->push_back(s.get<std::string>());
    }
    return absl::OkStatus();
  }

  absl::Status ReadTarget(const Json& j, const std::string& where) {
    if (!j.is_object()) return Bad(where, "an object", TypeOf(j));
    SHARDCALL_RETURN_IF_ERROR(CheckKeys(
        j, where,
        {"name", "symbol", "platform", "api_version", "traits", "rule", "need_replication",
         "reduction", "permutation", "blocked", "pad", "sizes", "batch_dims", "backend_config",
         "kernel", "attributes"}));
    if (j.contains("symbol")) return NeedsLoader("symbol");
    if (!j.contains("name") || !j["name"].is_string()) {
      return Bad(where, "a string \"name\"", j.contains("name") ? TypeOf(j["name"]) : "none");
    }
    const std::string name = j["name"].get<std::string>();
    std::string config;
    if (j.contains("backend_config")) {
      if (!j["backend_config"].is_string()) {
        return Bad(where + ".backend_config", "a string", TypeOf(j["backend_config"]));
      }
      config = j["backend_config"].get<std::string>();
    }
    const std::string source = absl::StrCat("manifest ", file_);
    SHARDCALL_RETURN_IF_ERROR(ReadKernel(j, where, name, config, source));
    if (j.contains("kernel") && !j.contains("batch_dims") && !j.contains("rule")) {
      return absl::OkStatus();
    }
    if (j.contains("batch_dims") == j.contains("rule")) {
      return Bad(where, "either \"rule\" or \"batch_dims\"",
                 j.contains("rule") ? "both" : "neither");
    }
    if (j.contains("batch_dims")) {
      if (!j["batch_dims"].is_number_unsigned() || j["batch_dims"].get<uint64_t>() > 64) {
        return Bad(where + ".batch_dims", "a number of dimensions", j["batch_dims"].dump());
      }
      return targets_.RegisterBatchPartitionable(name, j["batch_dims"].get<int>(), config, source);
    }
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
        if (!value.is_number()) {
          return Bad(absl::StrCat(where, ".", key, ".", factor), "a number", TypeOf(value));
        }
        if (key[0] == 'p') {
          text.pad.push_back({factor, value.get<double>()});
        } else {
          text.sizes.push_back({factor, value.get<int64_t>()});
        }
      }
    }
    return targets_.RegisterRule(name, std::move(text), config, source);
  }

  // The target's calls go to the handler of another one.
  absl::Status ReadKernel(const Json& j, const std::string& where, const std::string& target,
                          const std::string& config, const std::string& source) const {
    for (const char* key : {"kernel", "attributes"}) {
      if (j.contains(key) && !j[key].is_string()) {
        return Bad(absl::StrCat(where, ".", key), "a string", TypeOf(j[key]));
      }
    }
    if (!j.contains("kernel")) {
      return j.contains("attributes")
                 ? Bad(where + ".attributes", "a \"kernel\" that takes them", "none")
                 : absl::OkStatus();
    }
    struct Bound {
      std::string text;
      AttributeMapView attributes;
    };
    auto bound = std::make_shared<Bound>();
    if (j.contains("attributes")) bound->text = j["attributes"].get<std::string>();
    SHARDCALL_ASSIGN_OR_RETURN(bound->attributes, AttributeMapView::Parse(bound->text));
    if (handlers_ == nullptr) return absl::OkStatus();
    const std::string kernel = j["kernel"].get<std::string>();
    SHARDCALL_ASSIGN_OR_RETURN(const HandlerEntry* shipped, handlers_->Find(kernel, "Host"));
    HandlerEntry entry;
    entry.target = target;
    entry.backend_config = config;
    entry.source = absl::StrCat(source, ", kernel ", kernel, bound->text);
    entry.host = [bound, host = shipped->host](const HandlerContext& context,
                                               absl::Span<const BufferView> operands,
                                               absl::Span<const BufferView> results) {
      HandlerContext own = context;
      own.attributes = &bound->attributes;
      own.backend_config = bound->text;
      return host(own, operands, results);
    };
    const auto before = handlers_->Find(target, "Host", config);
    if (before.ok() && (*before)->source == entry.source) return absl::OkStatus();
    return handlers_->Register(std::move(entry));
  }

  absl::Status ReadReduction(const Json& j, const std::string& where, RuleText* text) const {
    if (!j.contains("reduction")) return absl::OkStatus();
    const Json& r = j["reduction"];
    if (!r.is_object()) return Bad(where + ".reduction", "an object", TypeOf(r));
    static const std::pair<const char*, PartialOp> kOps[] = {
        {"add", PartialOp::kSum},     {"max", PartialOp::kMax}, {"min", PartialOp::kMin},
        {"mul", PartialOp::kProduct}, {"and", PartialOp::kAnd}, {"or", PartialOp::kOr},
        {"xor", PartialOp::kXor}};
    for (const auto& [factor, op] : r.items()) {
      bool known = false;
      for (const auto& [op_name, value] : kOps) {
        if (!op.is_string() || op.get<std::string>() != op_name) continue;
        text->reduction.push_back({factor, value});
        known = true;
      }
      if (!known) {
        return Bad(absl::StrCat(where, ".reduction.", factor), "add, max, min, mul, and, or, xor",
                   op.dump());
      }
    }
    return absl::OkStatus();
  }

  std::string file_;
  TargetRegistry& targets_;
  HandlerRegistry* handlers_;
};

}  // namespace

absl::Status LoadManifest(absl::string_view json, absl::string_view file_name,
                          TargetRegistry* targets, HandlerRegistry* handlers) {
  const Json j = Json::parse(json.begin(), json.end(), nullptr, /*allow_exceptions=*/false);
  if (j.is_discarded()) {
    Diagnostic d;
    d.code = "E141";
    d.message = "the manifest is no JSON";
    d.where = std::string(file_name);
    d.expected = "an object with a list \"targets\"";
    d.fix = "check it with a JSON tool, e.g. python3 -m json.tool";
    return ToStatus(d);
  }
  return ManifestReader(file_name, targets, handlers).Read(j);
}

absl::Status LoadPlugin(const std::string& path, TargetRegistry* targets,
                        HandlerRegistry* handlers) {
  if (!absl::EndsWith(path, ".json")) {
    Diagnostic d;
    d.code = "E142";
    d.message = absl::StrCat("\"", path, "\" is no manifest, and this version loads no libraries");
    d.expected = "a file that ends in .json";
    d.fix = "give the rules in a manifest";
    return ToStatus(d, absl::StatusCode::kUnimplemented);
  }
  struct stat info;  // a stream over a directory opens
  std::ifstream in(path, std::ios::binary);
  if (!in || stat(path.c_str(), &info) != 0 || S_ISDIR(info.st_mode)) {
    Diagnostic d;
    d.code = "E143";
    d.message = absl::StrCat("the plugin \"", path, "\" cannot be read");
    d.fix = "check the path given to --plugin";
    return ToStatus(d, absl::StatusCode::kNotFound);
  }
  std::stringstream text;
  text << in.rdbuf();
  return LoadManifest(text.str(), path, targets, handlers);
}

}  // namespace shardcall
