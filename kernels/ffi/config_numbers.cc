// SPDX-License-Identifier: Apache-2.0
#include "shardcall/kernels/ffi/config_numbers.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "shardcall/kernels/ffi/gpu_backend_config.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace {

using Json = nlohmann::ordered_json;

// The attributes' place in the JSON of XLA:GPU.
const Json::json_pointer& AttributesPointer() {
  static const auto* const kPointer =
      new Json::json_pointer("/custom_call_backend_config/attributes");
  return *kPointer;
}

constexpr size_t kDeepest = 64;  // nesting of objects and lists

// The numbers of a JSON document, by the same names as in dictionaries. E131 if it is nested too
// deeply. Without recursion, so that the depth is found first.
absl::Status ReadJson(const Json& document, std::vector<NumberPlace>* numbers,
                      std::vector<std::string>* pointers) {
  struct Visit {
    const Json* json;
    std::string name;
    Json::json_pointer pointer;
    size_t depth;
  };
  std::vector<Visit> todo = {{&document, "", Json::json_pointer(), 0}};
  while (!todo.empty()) {
    const Visit visit = std::move(todo.back());
    todo.pop_back();
    const Json& json = *visit.json;
    if (visit.depth > kDeepest) {
      return ToStatus({.code = "E131",
                       .message = "the backend_config of a call cannot be read",
                       .expected = absl::StrCat("at most ", kDeepest, " nested objects and lists"),
                       .found = absl::StrCat("more, at ", visit.name),
                       .fix = "Nest less"});
    }
    if (json.is_structured()) {
      size_t index = json.size();
      for (auto it = json.rbegin(); it != json.rend(); ++it) {  // the first is read first
        --index;
        if (json.is_array()) {
          todo.push_back({&*it, absl::StrCat(visit.name, "[", index, "]"), visit.pointer / index,
                          visit.depth + 1});
        } else {
          todo.push_back({&*it, absl::StrCat(visit.name, visit.name.empty() ? "" : ".", it.key()),
                          visit.pointer / it.key(), visit.depth + 1});
        }
      }
      continue;
    }
    if (!json.is_number()) continue;
    const bool large =
        json.is_number_unsigned() &&
        json.get<uint64_t>() > static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
    NumberPlace place;
    place.name = visit.name;
    place.type = json.is_number_integer() && !large ? ElementType::kS64 : ElementType::kF64;
    if (place.type == ElementType::kS64) place.value = json.get<int64_t>();
    numbers->push_back(std::move(place));
    pointers->push_back(visit.pointer.to_string());
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ConfigNumbers> ConfigNumbers::Read(absl::string_view config) {
  ConfigNumbers out;
  if (!IsGpuBackendConfig(config)) {
    out.text_ = std::string(config);
    SHARDCALL_ASSIGN_OR_RETURN(out.numbers_, NumbersOfAttributes(config));
    return out;
  }
  SHARDCALL_ASSIGN_OR_RETURN(out.text_, AttributesOfGpuBackendConfig(config));  // or it is no JSON
  out.outer_ = std::string(config);
  const Json json = Json::parse(out.outer_);
  if (json.contains(AttributesPointer())) {
    out.form_ = Form::kDictionaryInJson;
    SHARDCALL_ASSIGN_OR_RETURN(out.numbers_, NumbersOfAttributes(out.text_));
    return out;
  }
  out.form_ = Form::kJson;
  SHARDCALL_RETURN_IF_ERROR(ReadJson(json, &out.numbers_, &out.pointers_));
  return out;
}

const NumberPlace* ConfigNumbers::Find(absl::string_view name) const {
  const auto found = std::find_if(numbers_.begin(), numbers_.end(),
                                  [&](const NumberPlace& n) { return n.name == name; });
  return found == numbers_.end() ? nullptr : &*found;
}

std::string ConfigNumbers::With(absl::Span<const std::pair<size_t, int64_t>> values) const {
  if (form_ == Form::kJson) {
    Json json = Json::parse(outer_);
    for (const auto& [k, value] : values) json[Json::json_pointer(pointers_[k])] = value;
    return json.dump();
  }
  std::vector<std::pair<size_t, int64_t>> ordered(values.begin(), values.end());
  std::sort(ordered.begin(), ordered.end());  // numbers stand in the order of the text
  std::string text;
  size_t at = 0;
  for (const auto& [k, value] : ordered) {
    absl::StrAppend(&text, text_.substr(at, numbers_[k].begin - at), value);
    at = numbers_[k].begin + numbers_[k].size;
  }
  absl::StrAppend(&text, text_.substr(at));
  if (form_ == Form::kDictionary) return text;
  Json json = Json::parse(outer_);
  json[AttributesPointer()] = text;
  return json.dump();
}

}  // namespace internal
}  // namespace shardcall
