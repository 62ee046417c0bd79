// SPDX-License-Identifier: Apache-2.0
#include <bit>

#include "partitioner/runtime/fused_step.h"
#include "partitioner/runtime/isa.h"
#include "sharding/narrow_float.h"

namespace shardcall {
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

// As FloatToBF16 does.
void Round(float* values, int64_t n) {
  SHARDCALL_LANES
  for (int64_t i = 0; i < n; ++i) {
    const uint32_t bits = std::bit_cast<uint32_t>(values[i]);
    const uint32_t rounded = (bits + 0x7fffu + (bits >> 16 & 1)) & 0xffff0000u;
    const uint32_t nan = (bits & 0x80000000u) | 0x7fc00000u;
    const bool is_nan = (bits & 0x7fffffffu) > 0x7f800000u;
    values[i] = std::bit_cast<float>(is_nan ? nan : rounded);
  }
}

}  // namespace

void DecodeBf16(const uint16_t* in, float* out, int64_t n) {
  static const auto fn = BestForCpu<Decode>();
  fn(in, out, n);
}
void EncodeBf16(const float* in, uint16_t* out, int64_t n) {
  static const auto fn = BestForCpu<Encode>();
  fn(in, out, n);
}
void RoundToBf16(float* values, int64_t n) {
  static const auto fn = BestForCpu<Round>();
  fn(values, n);
}

}  // namespace shardcall
