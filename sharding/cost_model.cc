// SPDX-License-Identifier: Apache-2.0
#include "shardcall/sharding/cost_model.h"

#include <cmath>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
namespace {

struct Row {
  absl::string_view name;
  double CostModel::* field;
};
constexpr Row kRows[] = {{"bandwidth", &CostModel::bandwidth},
                         {"flops", &CostModel::flop_rate},
                         {"memory", &CostModel::memory_rate},
                         {"latency", &CostModel::latency},
                         {"trips", &CostModel::trip_count}};

}  // namespace

absl::StatusOr<CostModel> ParseCostModel(absl::string_view text, const CostModel& base) {
  CostModel out = base;
  for (absl::string_view part : absl::StrSplit(text, ',', absl::SkipWhitespace())) {
    const std::pair<absl::string_view, absl::string_view> term =
        absl::StrSplit(part, absl::MaxSplits('=', 1));
    const absl::string_view name = absl::StripAsciiWhitespace(term.first);
    double value = 0;
    bool known = false;
    for (const Row& row : kRows) {
      if (row.name != name) continue;
      // Written so that NaN is refused, too.
      known = absl::SimpleAtod(absl::StripAsciiWhitespace(term.second), &value) && value > 0 &&
              std::isfinite(value);
      out.*row.field = value;
    }
    if (known) continue;
    return ToStatus({.code = "E211",
                     .message = absl::StrCat("a cost cannot be read: \"",
                                             absl::StripAsciiWhitespace(part), "\""),
                     .expected = "bandwidth, flops, memory (per second), latency (seconds) or "
                                 "trips, = and a positive number",
                     .found = std::string(absl::StripAsciiWhitespace(part)),
                     .fix = "write for example --cost=bandwidth=50e9,latency=2e-6"});
  }
  return out;
}

}  // namespace shardcall
