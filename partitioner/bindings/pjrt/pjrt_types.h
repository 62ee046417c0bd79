// SPDX-License-Identifier: Apache-2.0
#ifndef SHARDCALL_PARTITIONER_BINDINGS_PJRT_PJRT_TYPES_H_
#define SHARDCALL_PARTITIONER_BINDINGS_PJRT_PJRT_TYPES_H_

#include <array>
#include <cstdint>

#include "shardcall/sharding/element_type.h"

namespace shardcall {
inline namespace internal {
namespace pjrt {

// PJRT_Buffer_Type k is this element type: the order of pjrt_c_api.h, which is not that of
// xla.PrimitiveType. Later types (s1, u1) are omitted: a plugin that does not know them aborts the
// process.
inline constexpr std::array<ElementType, 30> kBufferTypes = {ElementType::kInvalid,
                                                             ElementType::kPred,
                                                             ElementType::kS8,
                                                             ElementType::kS16,
                                                             ElementType::kS32,
                                                             ElementType::kS64,
                                                             ElementType::kU8,
                                                             ElementType::kU16,
                                                             ElementType::kU32,
                                                             ElementType::kU64,
                                                             ElementType::kF16,
                                                             ElementType::kF32,
                                                             ElementType::kF64,
                                                             ElementType::kBF16,
                                                             ElementType::kC64,
                                                             ElementType::kC128,
                                                             ElementType::kF8E5M2,
                                                             ElementType::kF8E4M3FN,
                                                             ElementType::kF8E4M3B11FNUZ,
                                                             ElementType::kF8E5M2FNUZ,
                                                             ElementType::kF8E4M3FNUZ,
                                                             ElementType::kS4,
                                                             ElementType::kU4,
                                                             ElementType::kToken,
                                                             ElementType::kS2,
                                                             ElementType::kU2,
                                                             ElementType::kF8E4M3,
                                                             ElementType::kF8E3M4,
                                                             ElementType::kF8E8M0FNU,
                                                             ElementType::kF4E2M1FN};

// 0 for a type that PJRT's buffers do not support.
inline int32_t BufferType(ElementType type) {
  for (size_t k = 1; k < kBufferTypes.size(); ++k) {
    if (kBufferTypes[k] == type) return static_cast<int32_t>(k);
  }
  return 0;
}

}  // namespace pjrt
}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_BINDINGS_PJRT_PJRT_TYPES_H_
