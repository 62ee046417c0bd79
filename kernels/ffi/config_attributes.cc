// SPDX-License-Identifier: Apache-2.0
#include "shardcall/kernels/ffi/config_attributes.h"

#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "shardcall/kernels/ffi/gpu_backend_config.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace {

using Json = nlohmann::json;  // its members are sorted by name, as those of a dictionary

Attribute FromJson(const Json& json) {
  if (json.is_boolean()) {
    return {AttributeScalar{.type = ElementType::kPred, .i = json.get<bool>() ? 1 : 0}};
  }
  if (json.is_number_float()) {
    return {AttributeScalar{.type = ElementType::kF64, .f = json.get<double>()}};
  }
  if (json.is_number_integer()) {
    const bool large = json.is_number_unsigned() && json.get<uint64_t>() >> 63 != 0;
    return {AttributeScalar{.type = large ? ElementType::kU64 : ElementType::kS64,
                            .i = static_cast<int64_t>(json.get<uint64_t>())}};
  }
  if (json.is_string()) return {json.get<std::string>()};
  if (json.is_array()) return {AttributeArray()};
  return {Attribute::Dictionary()};
}

}  // namespace

absl::StatusOr<AttributeMapView> AttributesOfConfig(absl::string_view config) {
  if (!IsGpuBackendConfig(config)) return AttributeMapView::Parse(config);
  SHARDCALL_ASSIGN_OR_RETURN(const std::string dictionary, AttributesOfGpuBackendConfig(config));
  if (!dictionary.empty()) return AttributeMapView::Parse(dictionary);
  const Json json = Json::parse(config.begin(), config.end());  // or the line above has failed
  Attribute::Dictionary entries;
  for (const auto& [name, value] : json.items()) {
    if (!value.is_null()) entries.emplace_back(name, FromJson(value));
  }
  return AttributeMapView(std::move(entries));
}

}  // namespace internal
}  // namespace shardcall
