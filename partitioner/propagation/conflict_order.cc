// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/propagation/conflict_order.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {

absl::string_view ConflictOrderName(ConflictOrder order) {
  switch (order) {
    case ConflictOrder::kWait: return "wait";
    case ConflictOrder::kLarger: return "larger";
    case ConflictOrder::kSmaller: return "smaller";
  }
  return "";
}

absl::StatusOr<std::optional<ConflictOrder>> ParseConflictOrder(absl::string_view text) {
  if (text == "cheapest") return std::nullopt;
  for (ConflictOrder order : kConflictOrders) {
    if (text == ConflictOrderName(order)) return order;
  }
  return ToStatus({.code = "E212",
                   .message = absl::StrCat("there is no order of conflicts \"", text, "\""),
                   .expected = "cheapest, wait, larger or smaller",
                   .found = std::string(text),
                   .fix = "leave --conflicts out for what leads to the cheapest plan"});
}

}  // namespace shardcall
