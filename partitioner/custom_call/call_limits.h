// SPDX-License-Identifier: Apache-2.0
// What every call of a target keeps beyond what its rule says: sizes that follow from
// others, and what its operands hold. Checks of the rule call the target so.
//
//   // A step of an LSTM: gates[b, 4 h], and rows that are taken from a table of s.
//   targets.RegisterCallLimits("lstm", {.sizes = {{"g", "4 h"}},
//                                       .ranges = {{.operand = 2, .high = "s"}}});
#ifndef SHARDCALL_PARTITIONER_CUSTOM_CALL_CALL_LIMITS_H_
#define SHARDCALL_PARTITIONER_CUSTOM_CALL_CALL_LIMITS_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "shardcall/sharding/base/public.h"

namespace shardcall SHARDCALL_PUBLIC {

// times * factor + plus; without a factor the number `plus`.
struct SizeFormula {
  int64_t times = 0;
  std::string factor = {};
  int64_t plus = 0;
};
// "4 h", "h + 1", "2 h - 1", "7". E105 where it is none of these.
absl::StatusOr<SizeFormula> ParseSizeFormula(absl::string_view text);

struct OperandRange {
  int operand = 0;        // by number, tuples flattened
  std::string low = "0";  // the least that its elements are
  std::string high = {};  // above all of them; both as ParseSizeFormula reads them
};

struct CallLimits {
  // Factor, and its size: "g" is "4 h". What a formula names is no formula itself.
  std::vector<std::pair<std::string, std::string>> sizes = {};
  std::vector<OperandRange> ranges = {};
};
bool operator==(const CallLimits& a, const CallLimits& b);
// E105: formulas that do not parse, or that are of each other; a range of nothing.
absl::Status CheckCallLimits(const CallLimits& limits);

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_CUSTOM_CALL_CALL_LIMITS_H_
