// SPDX-License-Identifier: Apache-2.0
#include "shardcall/sharding/base/human_bytes.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"

namespace shardcall {

std::string HumanBytes(double bytes) {
  // An average over the devices, of which few send anything.
  if (bytes > 0 && bytes < 1) return absl::StrFormat("%.1g B", bytes);
  const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  int u = 0;
  for (; bytes >= 1024 && u < 4; ++u) bytes /= 1024;
  return u == 0 ? absl::StrFormat("%.0f %s", bytes, units[u])
                : absl::StrFormat("%.2f %s", bytes, units[u]);
}

absl::optional<double> ParseBytes(absl::string_view text) {
  static const std::pair<const char*, double> kUnits[] = {
      {"KiB", 1024.0}, {"MiB", 1048576.0}, {"GiB", 1073741824.0}, {"TiB", 1099511627776.0},
      {"KB", 1e3},     {"MB", 1e6},        {"GB", 1e9},           {"TB", 1e12},
      {"B", 1}};
  double scale = 1;
  for (const auto& [unit, factor] : kUnits) {
    const absl::string_view u(unit);
    if (text.size() > u.size() && text.substr(text.size() - u.size()) == u) {
      scale = factor;
      text.remove_suffix(u.size());
      break;
    }
  }
  double value = 0;
  if (!absl::SimpleAtod(absl::StripAsciiWhitespace(text), &value) || !(value >= 0)) {
    return absl::nullopt;
  }
  return value * scale;
}

}  // namespace shardcall
