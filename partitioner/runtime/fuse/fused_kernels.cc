// SPDX-License-Identifier: Apache-2.0
#include <bit>

#include "shardcall/partitioner/runtime/fuse/fused_step.h"
#include "shardcall/partitioner/runtime/lanes/isa.h"
#include "shardcall/sharding/narrow_float.h"

namespace shardcall {
inline namespace internal {
namespace {

void Decode(const uint16_t* in, float* out, int64_t n) {
  SHARDCALL_LANES
  for (int64_t i = 0; i < n; ++i) out[i] = BF16ToFloat(in[i]);
}

void Encode(const float* in, uint16_t* out, int64_t n) {
  SHARDCALL_LANES
  for (int64_t i = 0; i < n; ++i) {
    out[i] = static_cast<uint16_t>(std::bit_cast<uint32_t>(in[i]) >> 16);
  }
}

void Round(float* values, int64_t n) {
  SHARDCALL_LANES
  for (int64_t i = 0; i < n; ++i) values[i] = RoundedToBf16(values[i]);
}

}  // namespace

void DecodeBf16(const uint16_t* in, float* out, int64_t n) {
  const auto fn = BestForCpu<Decode>();
  fn(in, out, n);
}
void EncodeBf16(const float* in, uint16_t* out, int64_t n) {
  const auto fn = BestForCpu<Encode>();
  fn(in, out, n);
}
void RoundToBf16(float* values, int64_t n) {
  const auto fn = BestWideForCpu<Round>();
  fn(values, n);
}

}  // namespace internal
}  // namespace shardcall
