// SPDX-License-Identifier: Apache-2.0
#include "shardcall/kernels/ffi/gpu_backend_config.h"

#include <nlohmann/json.hpp>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {

bool IsGpuBackendConfig(absl::string_view text) {
  text = absl::StripLeadingAsciiWhitespace(text);
  if (!absl::ConsumePrefix(&text, "{")) return false;
  text = absl::StripLeadingAsciiWhitespace(text);
  if (!absl::ConsumePrefix(&text, "\"")) return false;
  for (; !text.empty() && text[0] != '"'; text.remove_prefix(1)) {
    if (text[0] == '\\' && text.size() > 1) text.remove_prefix(1);
  }
  if (!absl::ConsumePrefix(&text, "\"")) return false;
  text = absl::StripLeadingAsciiWhitespace(text);
  return absl::StartsWith(text, ":");
}

absl::StatusOr<std::string> AttributesOfGpuBackendConfig(absl::string_view text) {
  const auto json = nlohmann::json::parse(text.begin(), text.end(), nullptr, false);
  const auto wrong = [](std::string expected, std::string found) {
    return ToStatus({.code = "E131",
                     .message = "the backend_config of a GPU's call cannot be read",
                     .expected = std::move(expected),
                     .found = std::move(found),
                     .fix = "Write {\"custom_call_backend_config\": {\"attributes\": \"{name = "
                            "value : type}\"}}, or the attributes alone"});
  };
  if (json.is_discarded()) return wrong("JSON", "what is none");
  const auto config = json.find("custom_call_backend_config");
  if (config == json.end()) return std::string();
  if (!config->is_object()) {
    return wrong("an object custom_call_backend_config", config->type_name());
  }
  const auto attributes = config->find("attributes");
  if (attributes == config->end()) return std::string();
  if (!attributes->is_string()) {
    return wrong("a string custom_call_backend_config.attributes", attributes->type_name());
  }
  return attributes->get<std::string>();
}

}  // namespace internal
}  // namespace shardcall
