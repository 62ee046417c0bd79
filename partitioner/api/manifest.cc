// SPDX-License-Identifier: Apache-2.0
#include "partitioner/api/manifest.h"

#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <set>
#include <sstream>
#include <utility>

#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "kernels/ffi/ffi_types.h"
#include "kernels/ffi/library.h"
#include "kernels/ffi/platform.h"
#include "kernels/ffi/typed_handler.h"
#include "kernels/ffi/untyped_handler.h"
#include "partitioner/api/manifest_facts.h"
#include "partitioner/api/partial_op_names.h"
#include "partitioner/api/reference.h"
#include "sharding/status.h"

namespace shardcall {
namespace {

using Json = nlohmann::ordered_json;

absl::StatusOr<std::string> ReadFile(const std::string& path, const char* fix) {
  struct stat info;  // a stream over a directory opens
  std::ifstream in(path, std::ios::binary);
  if (!in || stat(path.c_str(), &info) != 0 || S_ISDIR(info.st_mode)) {
    Diagnostic d;
    d.code = "E143";
    d.message = absl::StrCat("\"", path, "\" cannot be read");
    d.fix = fix;
    return ToStatus(d, absl::StatusCode::kNotFound);
  }
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

class ManifestReader {
 public:
  ManifestReader(absl::string_view file_name, TargetRegistry* targets, HandlerRegistry* handlers,
                 LoweringRegistry* lowerings)
      : file_(file_name), targets_(*targets), handlers_(handlers), lowerings_(lowerings) {}

  absl::Status Read(const Json& j) {
    if (!j.is_object()) return Bad("", "a JSON object", TypeOf(j));
    SHARDCALL_RETURN_IF_ERROR(CheckKeys(j, "", {"library", "types", "targets", "lowerings"}));
    SHARDCALL_RETURN_IF_ERROR(Located(OpenLibrary(j), "library"));
    SHARDCALL_RETURN_IF_ERROR(Located(ReadTypes(j), "types"));
    if (!j.contains("targets")) return Bad("", "a list \"targets\"", "none");
    const Json& list = j["targets"];
    if (!list.is_array()) return Bad("targets", "a list", TypeOf(list));
    for (size_t i = 0; i < list.size(); ++i) {
      const std::string where = absl::StrCat("targets[", i, "]");
      SHARDCALL_RETURN_IF_ERROR(Located(ReadTarget(list[i], where), where));
    }
    // Behind all rules: a VJP's target may stand anywhere in the list.
    for (size_t i = 0; i < list.size(); ++i) {
      const std::string where = absl::StrCat("targets[", i, "]");
      SHARDCALL_RETURN_IF_ERROR(Located(ReadFacts(list[i], where), where));
    }
    return ReadLowerings(j);
  }

 private:
  // Errors of registries and libraries do not know the manifest.
  absl::Status Located(const absl::Status& status, absl::string_view where) const {
    if (absl::StrContains(status.message(), absl::StrCat(" at ", file_))) return status;
    return In(status, absl::StrCat(where, " of ", file_));
  }
  ManifestError Error() const {
    return [this](absl::string_view where, std::string expected, std::string found) {
      return Bad(where, std::move(expected), std::move(found));
    };
  }
  absl::Status ReadFacts(const Json& j, const std::string& where) {
    const std::string name = j["name"].get<std::string>();
    if (j.contains("batching")) {
      SHARDCALL_ASSIGN_OR_RETURN(
          BatchingSpec batching, ReadManifestBatching(j["batching"], where + ".batching", Error()));
      SHARDCALL_RETURN_IF_ERROR(targets_.RegisterBatching(name, std::move(batching)));
    }
    if (!j.contains("vjp")) return absl::OkStatus();
    SHARDCALL_ASSIGN_OR_RETURN(
        VjpSpec vjp, ReadManifestVjp(j["vjp"], where + ".vjp", Error(), [this](const auto& path) {
          return ReadFile(Beside(path), "give the path of HLO text, beside the manifest");
        }));
    return targets_.RegisterVjp(name, std::move(vjp));
  }
  absl::Status ReadLowerings(const Json& j) {
    if (!j.contains("lowerings")) return absl::OkStatus();
    const Json& list = j["lowerings"];
    if (!list.is_array()) return Bad("lowerings", "a list", TypeOf(list));
    if (lowerings_ == nullptr) {
      return Bad("lowerings", "targets alone, where no LoweringRegistry is passed",
                 absl::StrCat(list.size(), " lowerings"));
    }
    std::set<std::pair<std::string, std::string>> seen;
    for (size_t i = 0; i < list.size(); ++i) {
      // None of them skips, so that a second one would never be asked.
      const Json& j = list[i];
      if (j.is_object() && !seen.emplace(j.value("name", Json()).dump(),
                                         j.value("platform", Json()).dump()).second) {
        return Bad(absl::StrCat("lowerings[", i, "]"), "one lowering for a name and a platform",
                   "a second one");
      }
      SHARDCALL_RETURN_IF_ERROR(ReadManifestLowering(list[i], absl::StrCat("lowerings[", i, "]"),
                                                     absl::StrCat("manifest ", file_), Error(),
                                                     lowerings_));
    }
    return absl::OkStatus();
  }

  static std::string TypeOf(const Json& j) { return j.type_name(); }

  absl::Status Bad(absl::string_view where, std::string expected, std::string found) const {
    Diagnostic d;
    d.code = "E141";
    d.message = "the manifest cannot be used";
    d.where = where.empty() ? file_ : absl::StrCat(file_, " ", where);
    d.expected = std::move(expected);
    d.found = std::move(found);
    d.fix = "see Manifests in partitioner/api/README.md for their form";
    return ToStatus(d);
  }
  absl::StatusOr<std::string> String(const Json& j, const char* key, absl::string_view where,
                                     const char* fallback = nullptr) const {
    if (!j.contains(key) && fallback != nullptr) return std::string(fallback);
    if (!j.contains(key) || !j[key].is_string()) {
      return Bad(where, absl::StrCat("a string \"", key, "\""),
                 j.contains(key) ? TypeOf(j[key]) : "none");
    }
    return j[key].get<std::string>();
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

  absl::Status OpenLibrary(const Json& j) {
    if (!j.contains("library")) return absl::OkStatus();
    SHARDCALL_ASSIGN_OR_RETURN(std::string path, String(j, "library", ""));
    if (handlers_ == nullptr) {
      Diagnostic d;
      d.code = "E142";
      d.message = "the manifest has a library, and only rules are read here";
      d.where = file_;
      d.fix = "pass a HandlerRegistry";
      return ToStatus(d);
    }
    SHARDCALL_ASSIGN_OR_RETURN(library_, Library::Open(Beside(path)));
    return absl::OkStatus();
  }
  // A path relative to the manifest.
  std::string Beside(const std::string& path) const {
    const size_t slash = file_.rfind('/');
    if (absl::StartsWith(path, "/") || slash == std::string::npos) return path;
    return absl::StrCat(file_.substr(0, slash + 1), path);
  }

  // A variable or function of the library; null where `key` is not given.
  absl::StatusOr<void*> Symbol(const Json& j, const char* key, absl::string_view where) const {
    if (!j.contains(key)) return nullptr;
    SHARDCALL_ASSIGN_OR_RETURN(const std::string name, String(j, key, where));
    if (library_ == nullptr) {
      return Bad(where, "a \"library\" that has the symbol", "none");
    }
    return library_->Get(name);
  }

  absl::Status ReadTypes(const Json& j) {
    if (!j.contains("types")) return absl::OkStatus();
    if (!j["types"].is_array()) return Bad("types", "a list", TypeOf(j["types"]));
    for (size_t i = 0; i < j["types"].size(); ++i) {
      const Json& type = j["types"][i];
      const std::string where = absl::StrCat("types[", i, "]");
      if (!type.is_object()) return Bad(where, "an object", TypeOf(type));
      SHARDCALL_RETURN_IF_ERROR(CheckKeys(type, where, {"name", "type_id", "type_info"}));
      SHARDCALL_ASSIGN_OR_RETURN(const std::string name, String(type, "name", where));
      SHARDCALL_RETURN_IF_ERROR(String(type, "type_id", where).status());
      SHARDCALL_ASSIGN_OR_RETURN(void* const id_symbol, Symbol(type, "type_id", where));
      SHARDCALL_ASSIGN_OR_RETURN(void* const info_symbol, Symbol(type, "type_info", where));
      auto* const id = static_cast<abi::TypeId*>(id_symbol);
      const auto* const info = static_cast<const abi::TypeInfo*>(info_symbol);
      SHARDCALL_ASSIGN_OR_RETURN(
          id->id, RegisterFfiType(name, id->id, info == nullptr ? nullptr : info->deleter));
    }
    return absl::OkStatus();
  }

  absl::Status ReadHandler(const Json& j, const std::string& where, const std::string& name,
                           const std::string& config) {
    std::vector<std::string> traits;
    SHARDCALL_RETURN_IF_ERROR(Strings(j, "traits", where, &traits));
    const bool symbol = j.contains("symbol");
    SHARDCALL_ASSIGN_OR_RETURN(std::string platform, String(j, "platform", where, "Host"));
    SHARDCALL_ASSIGN_OR_RETURN(platform, PlatformFromName(platform));
    int64_t version = 4;
    if (j.contains("api_version")) {
      const Json& v = j["api_version"];
      version = v.is_number_integer() ? v.get<int64_t>() : 0;
      if (version < 1 || version > 4) {
        return Bad(where + ".api_version", "1, 2, 3 (untyped) or 4 (typed FFI)", v.dump());
      }
    }
    for (const std::string& trait : traits) {
      if (trait != "COMMAND_BUFFER_COMPATIBLE" && trait != "DEFAULT") {
        return Bad(where + ".traits", "DEFAULT or COMMAND_BUFFER_COMPATIBLE", trait);
      }
      if (version != 4 && trait != "DEFAULT") {
        return Bad(where + ".traits", "none with an untyped handler", trait);
      }
    }
    for (const char* key : {"traits", "api_version", "platform"}) {
      const bool of_kernel = j.contains("kernel") && absl::string_view(key) == "platform";
      if (!symbol && j.contains(key) && !of_kernel) {
        return Bad(absl::StrCat(where, ".", key), "a \"symbol\" that has it", "none");
      }
    }
    if (!symbol) return absl::OkStatus();
    traits.erase(std::remove(traits.begin(), traits.end(), "DEFAULT"), traits.end());
    abi::HandlerBundle stages = {};
    if (j["symbol"].is_object()) {
      const Json& s = j["symbol"];
      const std::string at = where + ".symbol";
      SHARDCALL_RETURN_IF_ERROR(
          CheckKeys(s, at, {"instantiate", "prepare", "initialize", "execute"}));
      for (const auto& [key, stage] :
           {std::make_pair("instantiate", &stages.instantiate), {"prepare", &stages.prepare},
            {"initialize", &stages.initialize}, {"execute", &stages.execute}}) {
        SHARDCALL_ASSIGN_OR_RETURN(void* const function, Symbol(s, key, at));
        *stage = reinterpret_cast<abi::Handler*>(function);
      }
    } else {
      SHARDCALL_ASSIGN_OR_RETURN(void* const function, Symbol(j, "symbol", where));
      stages.execute = reinterpret_cast<abi::Handler*>(function);
    }
    if (version != 4) {
      if (j["symbol"].is_object()) {
        return Bad(where + ".symbol", "a string: an untyped handler has no stages", "an object");
      }
      SHARDCALL_ASSIGN_OR_RETURN(
          HandlerEntry entry,
          MakeUntypedEntry(name, platform, reinterpret_cast<void*>(stages.execute),
                           static_cast<int>(version), library_->path(), library_));
      entry.backend_config = config;
      return handlers_->Register(std::move(entry));
    }
    SHARDCALL_ASSIGN_OR_RETURN(
        HandlerEntry entry, MakeTypedEntry(name, platform, stages, library_->path(), library_));
    entry.backend_config = config;
    for (const std::string& trait : traits) {
      if (std::find(entry.traits.begin(), entry.traits.end(), trait) == entry.traits.end()) {
        entry.traits.push_back(trait);
      }
    }
    return handlers_->Register(std::move(entry));
  }

  absl::Status ReadTarget(const Json& j, const std::string& where) {
    if (!j.is_object()) return Bad(where, "an object", TypeOf(j));
    SHARDCALL_RETURN_IF_ERROR(CheckKeys(
        j, where,
        {"name", "symbol", "platform", "api_version", "traits", "rule", "need_replication",
         "reduction", "permutation", "blocked", "pad", "sizes", "batch_dims", "backend_config",
         "kernel", "attributes", "partition_like", "vjp", "batching"}));
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
    const bool computed = j.contains("kernel") || j.contains("symbol");
    if (computed && !j.contains("batch_dims") && !j.contains("rule")) {
      return absl::OkStatus();
    }
    if (j.contains("batch_dims") == j.contains("rule")) {
      return Bad(where, "either \"rule\" or \"batch_dims\"",
                 j.contains("rule") ? "both" : "neither");
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

  // The rule is that of a program in HLO text.
  absl::Status ReadReference(const Json& j, const std::string& where, const std::string& name,
                             const std::string& source) const {
    for (const char* key : {"rule", "batch_dims", "backend_config"}) {
      if (j.contains(key)) return Bad(where, absl::StrCat("no \"", key, "\""), "partition_like");
    }
    SHARDCALL_ASSIGN_OR_RETURN(const std::string path, String(j, "partition_like", where));
    SHARDCALL_ASSIGN_OR_RETURN(
        std::string hlo, ReadFile(Beside(path), "give the path of HLO text, beside the manifest"));
    return In(RegisterPartitionLike(name, std::move(hlo), &targets_, source), Beside(path));
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
    for (const auto& [factor, op] : r.items()) {
      PartialOp value;
      if (!op.is_string() || !PartialOpFromName(op.get<std::string>(), &value)) {
        return Bad(absl::StrCat(where, ".reduction.", factor), kPartialOpNames, op.dump());
      }
      text->reduction.push_back({factor, value});
    }
    return absl::OkStatus();
  }

  std::string file_;
  TargetRegistry& targets_;
  HandlerRegistry* handlers_;
  LoweringRegistry* lowerings_;
  std::shared_ptr<const Library> library_;
};

}  // namespace

absl::Status LoadManifest(absl::string_view json, absl::string_view file_name,
                          TargetRegistry* targets, HandlerRegistry* handlers,
                          LoweringRegistry* lowerings) {
  // The parser keeps the last of equal keys.
  std::vector<std::set<std::string>> keys;
  std::string twice;
  const auto look = [&](int, Json::parse_event_t event, Json& value) {
    if (event == Json::parse_event_t::object_start) keys.emplace_back();
    if (event == Json::parse_event_t::object_end) keys.pop_back();
    if (event == Json::parse_event_t::key && twice.empty() &&
        !keys.back().insert(value.get<std::string>()).second) {
      twice = value.get<std::string>();
    }
    return true;
  };
  const Json j = Json::parse(json.begin(), json.end(), look, /*allow_exceptions=*/false);
  if (j.is_discarded()) {
    Diagnostic d;
    d.code = "E141";
    d.message = "the manifest is no JSON";
    d.where = std::string(file_name);
    d.expected = "an object with a list \"targets\"";
    d.fix = "check it with a JSON tool, e.g. python3 -m json.tool";
    return ToStatus(d);
  }
  if (!twice.empty()) {
    return ToStatus({.code = "E141",
                     .message = "an object of the manifest has a key twice",
                     .where = std::string(file_name),
                     .expected = "each key once",
                     .found = absl::StrCat("\"", twice, "\" twice"),
                     .fix = "Leave one of the two out"});
  }
  return ManifestReader(file_name, targets, handlers, lowerings).Read(j);
}

absl::Status LoadManifestFile(const std::string& path, TargetRegistry* targets,
                              HandlerRegistry* handlers, LoweringRegistry* lowerings) {
  SHARDCALL_ASSIGN_OR_RETURN(const std::string text,
                             ReadFile(path, "check the path given to --plugin"));
  return LoadManifest(text, path, targets, handlers, lowerings);
}

}  // namespace shardcall
