// SPDX-License-Identifier: Apache-2.0
// Maps elements to integers with the same order: floats by total order.
#ifndef SHARDCALL_KERNELS_MATH_SORT_KEYS_H_
#define SHARDCALL_KERNELS_MATH_SORT_KEYS_H_

#include <cstdint>
#include <vector>

#include "shardcall/sharding/element_type.h"

namespace shardcall {
inline namespace internal {

// The key of a float of at most 16 bits. NaNs are ordered by their payloads; if the only NaN has
// the bits of -0 (the "fnuz" types), it counts as negative.
inline int32_t NarrowOrderKey(ElementType type, int32_t bits) {
  if (type == ElementType::kF8E8M0FNU) return bits;
  const int32_t sign = 1 << (ElementTypeBits(type) - 1);
  if ((bits & sign) == 0) return bits;
  const bool unsigned_zero = type == ElementType::kF8E4M3FNUZ || type == ElementType::kF8E5M2FNUZ ||
                             type == ElementType::kF8E4M3B11FNUZ;
  if (unsigned_zero && bits == sign) return -2 * sign;
  return ~(bits ^ sign);
}

// keys[i] < keys[j] iff element i precedes element j. Not for complex types.
void OrderKeys(ElementType type, const void* elements, int64_t count, std::vector<int64_t>* keys);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_KERNELS_MATH_SORT_KEYS_H_
