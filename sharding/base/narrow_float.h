// SPDX-License-Identifier: Apache-2.0
// Conversions between f32 or f64 and the float types that C++ lacks: bf16, f16,
// the f8 kinds, f6 and f4. All round to nearest, ties to even, once, and
// subnormals are kept. What is too large becomes infinity where the type has
// one, else NaN where it has one, else (f4e2m1fn, f6e3m2fn, f6e2m3fn) the largest
// value. A NaN stays a NaN where there is one; in f4 and f6 it becomes a zero
// of the opposite sign. f8e8m0fnu holds powers of two only: zero and what is
// negative are NaN, and what is smaller than its least value becomes that.
#ifndef SHARDCALL_SHARDING_BASE_NARROW_FLOAT_H_
#define SHARDCALL_SHARDING_BASE_NARROW_FLOAT_H_

#include <bit>
#include <cstdint>

#include "shardcall/sharding/element_type.h"

namespace shardcall {

inline float BF16ToFloat(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

inline uint16_t FloatToBF16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return (bits >> 16 & 0x8000u) | 0x7fc0u;
  return static_cast<uint16_t>((bits + 0x7fffu + (bits >> 16 & 1)) >> 16);
}

float F16ToFloat(uint16_t bits);
uint16_t FloatToF16(float value);

// Any float type by its bits (f16 and bf16 16, f8 8, f6 and f4 the low ones).
// f32 and f64 are taken too. `type` must be a float type.
double FloatFromBits(ElementType type, uint64_t bits);
uint64_t FloatToBits(ElementType type, double value);

// The value of `type` that is nearest to `value`.
inline double RoundToFloatType(ElementType type, double value) {
  return FloatFromBits(type, FloatToBits(type, value));
}

// Arrays of any float type, in our host form (f4 and f6 one byte an element).
void LoadFloats(ElementType type, const void* from, int64_t count, float* to);
void LoadFloats(ElementType type, const void* from, int64_t count, double* to);
void StoreFloats(ElementType type, const float* from, int64_t count, void* to);
void StoreFloats(ElementType type, const double* from, int64_t count, void* to);

}  // namespace shardcall

#endif  // SHARDCALL_SHARDING_BASE_NARROW_FLOAT_H_
