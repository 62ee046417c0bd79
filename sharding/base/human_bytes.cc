// SPDX-License-Identifier: Apache-2.0
#include "shardcall/sharding/base/human_bytes.h"

#include "absl/strings/str_format.h"

namespace shardcall {

std::string HumanBytes(double bytes) {
  const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  int u = 0;
  for (; bytes >= 1024 && u < 4; ++u) bytes /= 1024;
  return u == 0 ? absl::StrFormat("%.0f %s", bytes, units[u])
                : absl::StrFormat("%.2f %s", bytes, units[u]);
}

}  // namespace shardcall
