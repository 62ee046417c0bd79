// SPDX-License-Identifier: Apache-2.0
// Which field of a LiteralProto holds the values of an element type.
#ifndef SHARDCALL_PARTITIONER_IR_PROTO_LITERAL_DATA_H_
#define SHARDCALL_PARTITIONER_IR_PROTO_LITERAL_DATA_H_

#include "partitioner/ir/proto/hlo.pb.h"
#include "shardcall/sharding/element_type.h"

namespace shardcall {
inline namespace internal {
namespace hlo_proto {

// Calls `bytes(field)` with the accessor pair of a bytes field, for the types
// whose values are stored as they stand in memory.
// clang-format off
#define SHARDCALL_LITERAL_BYTES(V) \
  V(kS1, s1s) V(kS2, s2s) V(kS4, s4s) V(kS8, s8s) \
  V(kU1, u1s) V(kU2, u2s) V(kU4, u4s) V(kU8, u8s) \
  V(kF16, f16s) V(kBF16, bf16s) V(kU16, u16s) V(kS16, s16s) \
  V(kF4E2M1FN, f4e2m1fns) V(kF8E3M4, f8e3m4s) V(kF8E4M3B11FNUZ, f8e4m3b11fnuzs) \
  V(kF8E4M3FN, f8e4m3fns) V(kF8E4M3FNUZ, f8e4m3fnuzs) V(kF8E4M3, f8e4m3s) \
  V(kF8E5M2FNUZ, f8e5m2fnuzs) V(kF8E5M2, f8e5m2s) \
  V(kF8E8M0FNU, f8e8m0fnus) V(kF6E3M2FN, f6e3m2fns) V(kF6E2M3FN, f6e2m3fns)
// clang-format on

// Repeated numbers, with how many of them an element takes.
// clang-format off
#define SHARDCALL_LITERAL_NUMBERS(V) \
  V(kPred, preds, 1) V(kS32, s32s, 1) V(kS64, s64s, 1) V(kU32, u32s, 1) \
  V(kU64, u64s, 1) V(kF32, f32s, 1) V(kF64, f64s, 1) V(kC64, c64s, 2) \
  V(kC128, c128s, 2)
// clang-format on

}  // namespace hlo_proto
}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_PROTO_LITERAL_DATA_H_
