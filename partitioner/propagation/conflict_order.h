// SPDX-License-Identifier: Apache-2.0
#ifndef SHARDCALL_PARTITIONER_PROPAGATION_CONFLICT_ORDER_H_
#define SHARDCALL_PARTITIONER_PROPAGATION_CONFLICT_ORDER_H_

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "shardcall/sharding/base/public.h"

namespace shardcall SHARDCALL_PUBLIC {

// Which of two factors takes an axis that both bring to one tensor. In the product of a batch
// x[{"d"}, {}] and a weight w[{}, {"d"}] it is the batch by kLarger if x is larger, and then w is
// gathered; by kSmaller x is gathered.
enum class ConflictOrder : uint8_t {
  // Neither, until nothing else is left to do at the op's level (step.h); then as kLarger. As
  // Shardy, whose basic propagation leaves conflicts to the aggressive one.
  kWait,
  kLarger,   // at once the one that comes from the larger tensor
  kSmaller,  // at once the one that comes from the smaller tensor
};
inline constexpr ConflictOrder kConflictOrders[] = {ConflictOrder::kWait, ConflictOrder::kLarger,
                                                    ConflictOrder::kSmaller};
absl::string_view ConflictOrderName(ConflictOrder order);  // "wait", "larger", "smaller"
// "cheapest": none. E212 for another text.
absl::StatusOr<std::optional<ConflictOrder>> ParseConflictOrder(absl::string_view text);

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_PROPAGATION_CONFLICT_ORDER_H_
