// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/bindings/manifest/manifest.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "shardcall/kernels/ffi/abi.h"
#include "shardcall/kernels/ffi/load/self_registration.h"
#include "shardcall/kernels/ffi/xla/ffi_types.h"
#include "shardcall/partitioner/bindings/all_or_nothing.h"
#include "shardcall/partitioner/bindings/manifest/manifest_reader.h"
#include "shardcall/sharding/base/status.h"
#include "shardcall/sharding/base/whole_file.h"

namespace shardcall {
inline namespace internal {
namespace manifest {

absl::StatusOr<std::string> ReadFile(const std::string& path, const char* fix, int64_t max_input) {
  absl::StatusOr<std::string> bytes = ReadWholeFile(path, max_input);
  if (bytes.ok() || DiagnosticCode(bytes.status()) == "E064") return bytes;
  Diagnostic d;
  d.code = "E143";
  d.message = absl::StrCat("\"", path, "\" cannot be read");
  d.fix = fix;
  return ToStatus(d, absl::StatusCode::kNotFound);
}

absl::Status ManifestReader::Read(const Json& j) {
  if (!j.is_object()) return Bad("", "a JSON object", TypeOf(j));
  SHARDCALL_RETURN_IF_ERROR(CheckKeys(j, "", {"library", "types", "targets", "lowerings"}));
  SHARDCALL_RETURN_IF_ERROR(Located(OpenLibrary(j), "library"));
  SHARDCALL_RETURN_IF_ERROR(Located(ReadTypes(j), "types"));
  if (library_ != nullptr) {  // after types, whose states its handlers may have
    SHARDCALL_RETURN_IF_ERROR(Located(RegisterSelfRegistered(library_, handlers_), "library"));
  }
  if (!j.contains("targets")) return Bad("", "a list \"targets\"", "none");
  const Json& list = j["targets"];
  if (!list.is_array()) return Bad("targets", "a list", TypeOf(list));
  for (size_t i = 0; i < list.size(); ++i) {
    const std::string where = absl::StrCat("targets[", i, "]");
    SHARDCALL_RETURN_IF_ERROR(Located(ReadTarget(list[i], where), where));
  }
  // After all rules, since a VJP's target may be anywhere in the list.
  for (size_t i = 0; i < list.size(); ++i) {
    const std::string where = absl::StrCat("targets[", i, "]");
    SHARDCALL_RETURN_IF_ERROR(Located(ReadFacts(list[i], where), where));
  }
  return ReadLowerings(j);
}

absl::Status ManifestReader::Located(const absl::Status& status, absl::string_view where) const {
  if (absl::StrContains(status.message(), absl::StrCat(" at ", file_))) return status;
  return In(status, absl::StrCat(where, " of ", file_));
}

absl::Status ManifestReader::Bad(absl::string_view where, std::string expected,
                                 std::string found) const {
  Diagnostic d;
  d.code = "E141";
  d.message = "the manifest cannot be used";
  d.where = where.empty() ? file_ : absl::StrCat(file_, " ", where);
  d.expected = std::move(expected);
  d.found = std::move(found);
  d.fix = "see Manifests in partitioner/bindings/README.md for their form";
  return ToStatus(d);
}

ManifestError ManifestReader::Error() const {
  return [this](absl::string_view where, std::string expected, std::string found) {
    return Bad(where, std::move(expected), std::move(found));
  };
}

std::string ManifestReader::Beside(const std::string& path) const {
  const size_t slash = file_.rfind('/');
  if (absl::StartsWith(path, "/") || slash == std::string::npos) return path;
  return absl::StrCat(file_.substr(0, slash + 1), path);
}

absl::Status ManifestReader::ReadLowerings(const Json& j) {
  if (!j.contains("lowerings")) return absl::OkStatus();
  const Json& list = j["lowerings"];
  if (!list.is_array()) return Bad("lowerings", "a list", TypeOf(list));
  if (lowerings_ == nullptr) {
    return Bad("lowerings", "targets alone, where no LoweringRegistry is passed",
               absl::StrCat(list.size(), " lowerings"));
  }
  std::set<std::pair<std::string, std::string>> seen;
  for (size_t i = 0; i < list.size(); ++i) {
    // A lowering never declines a call, so a second one would never be used.
    const Json& j = list[i];
    if (j.is_object() &&
        !seen.emplace(j.value("name", Json()).dump(), j.value("platform", Json()).dump()).second) {
      return Bad(absl::StrCat("lowerings[", i, "]"), "one lowering for a name and a platform",
                 "a second one");
    }
    SHARDCALL_RETURN_IF_ERROR(ReadManifestLowering(list[i], absl::StrCat("lowerings[", i, "]"),
                                                   absl::StrCat("manifest ", file_), Error(),
                                                   lowerings_));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> ManifestReader::String(const Json& j, const char* key,
                                                   absl::string_view where,
                                                   const char* fallback) const {
  if (!j.contains(key) && fallback != nullptr) return std::string(fallback);
  if (!j.contains(key) || !j[key].is_string()) {
    return Bad(where, absl::StrCat("a string \"", key, "\""),
               j.contains(key) ? TypeOf(j[key]) : "none");
  }
  return j[key].get<std::string>();
}

absl::Status ManifestReader::CheckKeys(const Json& j, absl::string_view where,
                                       const std::set<std::string>& known) const {
  return CheckManifestKeys(j, where, known, Error());
}

absl::Status ManifestReader::Strings(const Json& j, const char* key, absl::string_view where,
                                     std::vector<std::string>* out) const {
  if (!j.contains(key)) return absl::OkStatus();
  if (!j[key].is_array()) return Bad(absl::StrCat(where, ".", key), "a list", TypeOf(j[key]));
  for (const Json& s : j[key]) {
    if (!s.is_string()) return Bad(absl::StrCat(where, ".", key), "strings", TypeOf(s));
    out->push_back(s.get<std::string>());
  }
  return absl::OkStatus();
}

absl::Status ManifestReader::ReadTypes(const Json& j) {
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

}  // namespace manifest
}  // namespace internal

absl::Status LoadManifest(absl::string_view json, absl::string_view file_name,
                          TargetRegistry* targets, HandlerRegistry* handlers,
                          LoweringRegistry* lowerings, absl::Duration deadline, int64_t max_input) {
  // The parser keeps only the last of equal keys, so look for repeated ones here.
  std::vector<std::set<std::string>> keys;
  std::string twice;
  const auto look = [&](int, manifest::Json::parse_event_t event, manifest::Json& value) {
    if (event == manifest::Json::parse_event_t::object_start) keys.emplace_back();
    if (event == manifest::Json::parse_event_t::object_end) keys.pop_back();
    if (event == manifest::Json::parse_event_t::key && twice.empty() &&
        !keys.back().insert(value.get<std::string>()).second) {
      twice = value.get<std::string>();
    }
    return true;
  };
  const manifest::Json j =
      manifest::Json::parse(json.begin(), json.end(), look, /*allow_exceptions=*/false);
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
  return AllOrNothing(targets, handlers, lowerings, [&] {
    return manifest::ManifestReader(file_name, targets, handlers, lowerings, deadline, max_input)
        .Read(j);
  });
}

absl::Status LoadManifestFile(const std::string& path, TargetRegistry* targets,
                              HandlerRegistry* handlers, LoweringRegistry* lowerings,
                              absl::Duration deadline, int64_t max_input) {
  SHARDCALL_ASSIGN_OR_RETURN(
      const std::string text,
      manifest::ReadFile(path, "check the path given to --plugin", max_input));
  return LoadManifest(text, path, targets, handlers, lowerings, deadline, max_input);
}

}  // namespace shardcall
