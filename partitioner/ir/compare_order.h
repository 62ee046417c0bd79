// SPDX-License-Identifier: Apache-2.0
// The order of a comparison, which XLA writes since jaxlib 0.12 in place of the comparison's type.
#ifndef SHARDCALL_PARTITIONER_IR_COMPARE_ORDER_H_
#define SHARDCALL_PARTITIONER_IR_COMPARE_ORDER_H_

#include <cstdint>

#include "shardcall/partitioner/ir/attributes.h"

namespace shardcall {
inline namespace internal {

// In a partial order NaN is unordered, and -0 equals 0. The total order of floats is
// -NaN < -inf < .. < -0 < 0 < .. < inf < NaN. The two orders of integers are the same.
enum class CompareOrder : uint8_t { kPartial, kTotal };  // as in words::kCompareOrders

// The type of a comparison of elements of type `element` in that order.
inline CompareType CompareTypeOf(CompareOrder order, ElementType element) {
  const CompareType natural = NaturalCompareType(element);
  return order == CompareOrder::kTotal && natural == CompareType::kFloat ? CompareType::kTotalOrder
                                                                         : natural;
}

inline CompareOrder CompareOrderOf(CompareType type) {
  return type == CompareType::kFloat ? CompareOrder::kPartial : CompareOrder::kTotal;
}

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_COMPARE_ORDER_H_
