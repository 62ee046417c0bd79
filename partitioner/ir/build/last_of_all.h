// SPDX-License-Identifier: Apache-2.0
#ifndef SHARDCALL_PARTITIONER_IR_BUILD_LAST_OF_ALL_H_
#define SHARDCALL_PARTITIONER_IR_BUILD_LAST_OF_ALL_H_

#include <cstdint>

#include "shardcall/sharding/element_type.h"

namespace shardcall {
inline namespace internal {

// The bits of a value that comes after all others in the total order of a top-k. Masked padding is
// at the end of a line, so among equals the elements come before it.
inline uint64_t LastOfAllBits(ElementType type, bool largest) {
  const int bits = ElementTypeBits(type);
  const uint64_t ones = bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
  // Floats: the NaN with all bits set, with or without the sign bit. Integers: the least or largest
  // value.
  if (IsFloat(type)) return largest ? ones : ones >> 1;
  if (IsSignedInteger(type)) return largest ? ones ^ (ones >> 1) : ones >> 1;
  return largest ? 0 : ones;
}

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_BUILD_LAST_OF_ALL_H_
