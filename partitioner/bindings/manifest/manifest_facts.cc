// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/bindings/manifest/manifest_facts.h"

#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "shardcall/kernels/ffi/platform.h"
#include "shardcall/sharding/base/near_names.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kMostIndex = 1 << 20;

absl::StatusOr<std::string> String(const Json& j, const char* key, const std::string& where,
                                   const ManifestError& bad) {
  if (!j.contains(key)) return std::string();
  if (!j[key].is_string())
    return bad(absl::StrCat(where, ".", key), "a string", j[key].type_name());
  return j[key].get<std::string>();
}

// "operand 0", "result 1", "cotangent 0".
absl::StatusOr<VjpArgument> Argument(const Json& j, const std::string& where,
                                     const ManifestError& bad) {
  constexpr char kForm[] = "\"operand N\", \"result N\" or \"cotangent N\"";
  if (!j.is_string()) return bad(where, kForm, j.type_name());
  const std::string text = j.get<std::string>();
  const std::vector<std::string> words = absl::StrSplit(text, ' ', absl::SkipEmpty());
  int index = -1;
  if (words.size() != 2 || !absl::SimpleAtoi(words[1], &index) || index < 0) {
    return bad(where, kForm, text);
  }
  if (words[0] == "operand") return VjpArgument::Operand(index);
  if (words[0] == "result") return VjpArgument::Result(index);
  if (words[0] == "cotangent") return VjpArgument::Cotangent(index);
  return bad(where, kForm, text);
}

absl::StatusOr<std::vector<ElementType>> Types(const Json& j, const char* key,
                                               const std::string& where, const ManifestError& bad) {
  std::vector<ElementType> out;
  if (!j.contains(key)) return out;
  const std::string at = absl::StrCat(where, ".", key);
  if (!j[key].is_array()) return bad(at, "a list", j[key].type_name());
  for (const Json& type : j[key]) {
    out.push_back(type.is_string() ? ElementTypeFromName(type.get<std::string>())
                                   : ElementType::kInvalid);
    if (!IsArrayType(out.back())) return bad(at, "element types such as \"f32\"", type.dump());
  }
  return out;
}

// The sizes of a target, or of one of its rules, that are formulas. Rules share their factors.
absl::Status ReadFormulas(const Json& j, const std::string& where, const ManifestError& bad,
                          CallLimits* limits) {
  if (!j.is_object() || !j.contains("sizes") || !j["sizes"].is_object()) return absl::OkStatus();
  for (const auto& [factor, value] : j["sizes"].items()) {
    if (!value.is_string()) continue;
    const std::string formula = value.get<std::string>();
    const auto known = absl::c_find_if(
        limits->sizes, [&, &name = factor](const auto& s) { return s.first == name; });
    if (known == limits->sizes.end()) {
      limits->sizes.emplace_back(factor, formula);
    } else if (known->second != formula) {
      return bad(absl::StrCat(where, ".sizes.", factor),
                 absl::StrCat("\"", known->second, "\", as in the rule before"), formula);
    }
  }
  return absl::OkStatus();
}

// For messages: a number as it is, of other values the type.
std::string Found(const Json& j) { return j.is_number() ? j.dump() : j.type_name(); }

// An integer of 64 bits with a sign; none for other numbers.
std::optional<int64_t> WholeNumber(const Json& j) {
  constexpr uint64_t kMost = std::numeric_limits<int64_t>::max();
  if (!j.is_number_integer()) return std::nullopt;
  if (j.is_number_unsigned() && j.get<uint64_t>() > kMost) return std::nullopt;
  return j.get<int64_t>();
}

// One value of a "when"; false for what is none.
bool ReadConditionValue(const Json& j, AttributeCondition* out) {
  if (j.is_null()) {
    out->any_of.emplace_back();
  } else if (j.is_boolean()) {
    out->any_of.emplace_back(j.get<bool>());
  } else if (j.is_number_integer()) {
    const std::optional<int64_t> whole = WholeNumber(j);
    if (!whole.has_value()) return false;
    out->any_of.emplace_back(*whole);
  } else if (j.is_number()) {
    out->any_of.emplace_back(j.get<double>());
  } else if (j.is_string()) {
    out->any_of.emplace_back(j.get<std::string>());
  } else {
    return false;
  }
  return true;
}

}  // namespace

absl::Status CheckManifestKeys(const Json& j, absl::string_view where,
                               const std::set<std::string>& known, const ManifestError& bad) {
  if (!j.is_object()) return bad(where, "an object", j.type_name());
  for (const auto& [key, value] : j.items()) {
    if (known.count(key) != 0) continue;
    const std::vector<std::string> near =
        NearNames(key, std::vector<absl::string_view>(known.begin(), known.end()), 1);
    return bad(where, absl::StrCat("keys among ", absl::StrJoin(known, ", ")),
               near.empty() ? absl::StrCat("\"", key, "\"")
                            : absl::StrCat("\"", key, "\", which is near \"", near[0], "\""));
  }
  return absl::OkStatus();
}

absl::StatusOr<double> ReadManifestPad(const Json& j, const std::string& where,
                                       const ManifestError& bad) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (j.is_number()) return j.get<double>();
  if (j == "inf") return kInfinity;
  if (j == "-inf") return -kInfinity;
  if (j == "nan") return std::numeric_limits<double>::quiet_NaN();
  return bad(where, R"(a number, "inf", "-inf" or "nan")",
             j.is_string() ? j.dump() : j.type_name());
}

absl::StatusOr<int64_t> ReadManifestSize(const Json& j, const std::string& where,
                                         const ManifestError& bad) {
  const std::optional<int64_t> size = WholeNumber(j);
  if (size.has_value()) return *size;
  return bad(where, "an integer, or what it follows from, as in \"4 h\"", Found(j));
}

absl::StatusOr<VjpSpec> ReadManifestVjp(const Json& j, const std::string& where,
                                        const ManifestError& bad, const ManifestFile& file) {
  SHARDCALL_RETURN_IF_ERROR(CheckManifestKeys(j, where,
                                              {"target", "computation", "arguments", "gradients",
                                               "backend_config", "pad", "skip_absent_operands"},
                                              bad));
  VjpSpec vjp;
  SHARDCALL_ASSIGN_OR_RETURN(vjp.target, String(j, "target", where, bad));
  SHARDCALL_ASSIGN_OR_RETURN(const std::string path, String(j, "computation", where, bad));
  if (vjp.target.empty() == path.empty()) {
    return bad(where, "either \"target\" or \"computation\"", path.empty() ? "neither" : "both");
  }
  if (!path.empty()) {
    SHARDCALL_ASSIGN_OR_RETURN(vjp.computation, file(path));
  }
  for (const char* key : {"arguments", "gradients"}) {
    const bool list = j.contains(key) && j[key].is_array() && !j[key].empty();
    if (!list) {
      return bad(where, absl::StrCat("a list \"", key, "\""),
                 j.contains(key) ? j[key].type_name() : "none");
    }
  }
  for (size_t k = 0; k < j["arguments"].size(); ++k) {
    SHARDCALL_ASSIGN_OR_RETURN(
        const VjpArgument argument,
        Argument(j["arguments"][k], absl::StrCat(where, ".arguments[", k, "]"), bad));
    vjp.arguments.push_back(argument);
  }
  for (const Json& g : j["gradients"]) {
    if (!g.is_number_unsigned() || g.get<uint64_t>() > kMostIndex) {
      return bad(where + ".gradients", "numbers of operands", g.dump());
    }
    vjp.gradients.push_back(g.get<int>());
  }
  if (j.contains("skip_absent_operands")) {
    if (!j["skip_absent_operands"].is_boolean()) {
      return bad(where + ".skip_absent_operands", "true or false",
                 j["skip_absent_operands"].dump());
    }
    vjp.skip_absent_operands = j["skip_absent_operands"].get<bool>();
  }
  if (j.contains("pad")) {
    if (!j["pad"].is_object()) return bad(where + ".pad", "an object", j["pad"].type_name());
    for (const auto& [factor, value] : j["pad"].items()) {
      SHARDCALL_ASSIGN_OR_RETURN(const double pad,
                                 ReadManifestPad(value, absl::StrCat(where, ".pad.", factor), bad));
      vjp.pad.emplace_back(factor, pad);
    }
  }
  if (j.contains("backend_config")) {
    SHARDCALL_ASSIGN_OR_RETURN(vjp.backend_config, String(j, "backend_config", where, bad));
  }
  return vjp;
}

absl::StatusOr<BatchingSpec> ReadManifestBatching(const Json& j, const std::string& where,
                                                  const ManifestError& bad) {
  using Kind = BatchingSpec::Kind;
  if (j.is_string()) {
    const std::string kind = j.get<std::string>();
    if (kind == "leading") return BatchingSpec{Kind::kLeading};
    if (kind == "broadcast") return BatchingSpec{Kind::kBroadcast};
    if (kind == "loop") return BatchingSpec{Kind::kLoop};
  }
  if (j.is_object()) {
    SHARDCALL_RETURN_IF_ERROR(CheckManifestKeys(j, where, {"target"}, bad));
    SHARDCALL_ASSIGN_OR_RETURN(std::string target, String(j, "target", where, bad));
    if (!target.empty()) return BatchingSpec{Kind::kTarget, std::move(target)};
  }
  return bad(where, "\"leading\", \"broadcast\", \"loop\" or {\"target\": NAME}", j.dump());
}

absl::StatusOr<AttributeConditions> ReadManifestConditions(const Json& j, const std::string& where,
                                                           const ManifestError& bad) {
  constexpr char kForm[] =
      "a string, a number (integers below 2^63), true, false, null, or a list of these";
  if (!j.is_object()) return bad(where, "an object with attributes' values", j.type_name());
  AttributeConditions out;
  for (const auto& [name, value] : j.items()) {
    const std::string at = absl::StrCat(where, ".", name);
    AttributeCondition& condition = out.emplace_back();
    condition.name = name;
    if (!value.is_array()) {
      if (!ReadConditionValue(value, &condition)) return bad(at, kForm, Found(value));
      continue;
    }
    for (const Json& one : value) {
      if (!ReadConditionValue(one, &condition)) return bad(at, kForm, Found(one));
    }
    if (condition.any_of.empty()) return bad(at, kForm, "an empty list");
  }
  return out;
}

absl::StatusOr<std::vector<std::pair<std::string, std::string>>> ReadManifestAttributes(
    const Json& j, const std::string& where, const ManifestError& bad) {
  std::vector<std::pair<std::string, std::string>> out;
  if (!j.contains("attributes") || j["attributes"].is_string()) return out;
  const std::string at = where + ".attributes";
  if (!j["attributes"].is_object()) {
    return bad(at, "an object with formulas, as in {\"grid_x\": \"m / 16\"}",
               j["attributes"].type_name());
  }
  for (const auto& [name, formula] : j["attributes"].items()) {
    if (formula.is_number_integer()) {
      out.emplace_back(name, formula.dump());
    } else if (formula.is_string()) {
      out.emplace_back(name, formula.get<std::string>());
    } else {
      return bad(absl::StrCat(at, ".", name), "a formula such as \"m / 16\"", formula.type_name());
    }
  }
  return out;
}

absl::StatusOr<CallLimits> ReadManifestLimits(const Json& target, const std::string& where,
                                              const ManifestError& bad) {
  CallLimits limits;
  SHARDCALL_RETURN_IF_ERROR(ReadFormulas(target, where, bad, &limits));
  if (target.contains("rules") && target["rules"].is_array()) {
    for (size_t k = 0; k < target["rules"].size(); ++k) {
      SHARDCALL_RETURN_IF_ERROR(
          ReadFormulas(target["rules"][k], absl::StrCat(where, ".rules[", k, "]"), bad, &limits));
    }
  }
  if (target.contains("scratch")) {
    const Json& scratch = target["scratch"];
    const std::string at = where + ".scratch";
    if (!scratch.is_array()) return bad(at, "a list of results, as in [1]", scratch.type_name());
    for (const Json& result : scratch) {
      if (!result.is_number_unsigned() || result.get<uint64_t>() > kMostIndex) {
        return bad(at, "numbers of results", result.dump());
      }
      limits.scratch.push_back(result.get<int>());
    }
  }
  if (!target.contains("ranges")) return limits;
  const Json& ranges = target["ranges"];
  if (!ranges.is_object()) return bad(where + ".ranges", "an object", ranges.type_name());
  for (const auto& [operand, range] : ranges.items()) {
    const std::string at = absl::StrCat(where, ".ranges.", operand);
    OperandRange r;
    const std::vector<std::string> words = absl::StrSplit(operand, ' ', absl::SkipEmpty());
    if (words.size() != 2 || words[0] != "operand" || !absl::SimpleAtoi(words[1], &r.operand) ||
        r.operand < 0 || r.operand > kMostIndex) {
      return bad(at, "\"operand N\"", operand);
    }
    const auto read = [&](const Json& j, std::string* out) {
      const std::optional<int64_t> whole = WholeNumber(j);
      *out = j.is_string() ? j.get<std::string>() : whole.has_value() ? absl::StrCat(*whole) : "";
      return !out->empty();
    };
    if (!range.is_array() || range.size() != 2 || !read(range[0], &r.low) ||
        !read(range[1], &r.high)) {
      return bad(at, "the least and what is above all, as in [0, \"s\"]", range.dump());
    }
    limits.ranges.push_back(std::move(r));
  }
  return limits;
}

absl::Status ReadManifestLowering(const Json& j, const std::string& where,
                                  const std::string& source, const ManifestError& bad,
                                  LoweringRegistry* lowerings) {
  SHARDCALL_RETURN_IF_ERROR(
      CheckManifestKeys(j, where,
                        {"name", "platform", "target", "api_version", "backend_config",
                         "operand_types", "result_types", "column_major"},
                        bad));
  SHARDCALL_ASSIGN_OR_RETURN(const std::string name, String(j, "name", where, bad));
  SHARDCALL_ASSIGN_OR_RETURN(std::string platform, String(j, "platform", where, bad));
  if (!platform.empty()) {
    SHARDCALL_ASSIGN_OR_RETURN(platform, PlatformFromName(platform));
  }
  LoweredCall call;
  SHARDCALL_ASSIGN_OR_RETURN(call.target, String(j, "target", where, bad));
  if (name.empty() || call.target.empty()) {
    return bad(where, "a \"name\" and a \"target\"", name.empty() ? "no name" : "no target");
  }
  if (j.contains("api_version")) {
    const Json& v = j["api_version"];
    call.api_version = WholeNumber(v).value_or(0);
    if (call.api_version < 1 || call.api_version > 4) {
      return bad(where + ".api_version", "1, 2, 3 (untyped) or 4 (typed FFI)", v.dump());
    }
  }
  const bool own_config = j.contains("backend_config");
  SHARDCALL_ASSIGN_OR_RETURN(call.backend_config, String(j, "backend_config", where, bad));
  SHARDCALL_ASSIGN_OR_RETURN(call.operand_types, Types(j, "operand_types", where, bad));
  SHARDCALL_ASSIGN_OR_RETURN(const std::vector<ElementType> result_types,
                             Types(j, "result_types", where, bad));
  if (j.contains("column_major")) {
    if (!j["column_major"].is_boolean()) {
      return bad(where + ".column_major", "true or false", j["column_major"].dump());
    }
    call.column_major = j["column_major"].get<bool>();
  }
  return lowerings->Register(
      name, platform,
      [call, own_config, result_types](const LoweringRequest& request) -> LoweringAnswer {
        LoweredCall answer = call;
        if (!own_config) answer.backend_config = std::string(request.attributes);
        for (size_t k = 0; k < result_types.size() && k < request.results.size(); ++k) {
          answer.results.push_back(
              request.context->MakeArray(result_types[k], request.results[k]->dims()));
        }
        for (size_t k = result_types.size(); k < request.results.size(); ++k) {
          if (!result_types.empty()) answer.results.push_back(request.results[k]);
        }
        return answer;
      },
      source);
}

}  // namespace internal
}  // namespace shardcall
