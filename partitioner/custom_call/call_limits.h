// SPDX-License-Identifier: Apache-2.0
// Constraints that every call of a target satisfies beyond its rule: sizes that follow from other
// sizes, ranges of operand values, results without meaning. The checker of rules makes its example
// calls within them.
//
//   // A step of an LSTM: gates[b, 4 h], and rows that are looked up in a table of s.
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
  std::string low = "0";  // lower bound of the elements
  std::string high = {};  // exclusive upper bound; both are formulas
};

struct CallLimits {
  // A factor and the formula of its size: "g" is "4 h". A formula must not use a factor that has
  // one.
  std::vector<std::pair<std::string, std::string>> sizes = {};
  std::vector<OperandRange> ranges = {};
  // Results that are scratch memory, by number: their contents mean nothing, and are not compared.
  std::vector<int> scratch = {};
};
bool operator==(const CallLimits& a, const CallLimits& b);
inline bool operator!=(const CallLimits& a, const CallLimits& b) { return !(a == b); }
// E105: formulas that do not parse, or that use a factor with a formula; an empty range.
absl::Status CheckCallLimits(const CallLimits& limits);

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_CUSTOM_CALL_CALL_LIMITS_H_
