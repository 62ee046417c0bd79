// SPDX-License-Identifier: Apache-2.0
// Conversions between f32 or f64 and the float types that C++ lacks: bf16, f16, the f8 types, f6
// and f4. All of them round once, to nearest with ties to even, and keep subnormals. A value that
// is too large becomes infinity if the type has one, else NaN if the type has one, else (f4e2m1fn,
// f6e3m2fn, f6e2m3fn) the largest finite value. A NaN stays NaN if the type has one; in f4 and f6
// it becomes a zero of the opposite sign. f8e8m0fnu has powers of two only: zero and negative
// values become NaN, and positive values below its smallest become that smallest value.
#ifndef SHARDCALL_SHARDING_NARROW_FLOAT_H_
#define SHARDCALL_SHARDING_NARROW_FLOAT_H_

#include <bit>
#include <cstdint>

#include "shardcall/sharding/element_type.h"

namespace shardcall {
inline namespace internal {

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

// Between a value and its bits in any float type, f32 and f64 included; `type` must be a float
// type. f16 and bf16 use the low 16 bits, f8 types the low 8, f6 and f4 the low 6 and 4.
double FloatFromBits(ElementType type, uint64_t bits);
uint64_t FloatToBits(ElementType type, double value);

// The value of `type` that is nearest to `value`.
inline double RoundToFloatType(ElementType type, double value) {
  return FloatFromBits(type, FloatToBits(type, value));
}

// Arrays of any float type, in the layout of host buffers (f4 and f6 take one byte per element).
void LoadFloats(ElementType type, const void* from, int64_t count, float* to);
void LoadFloats(ElementType type, const void* from, int64_t count, double* to);
void StoreFloats(ElementType type, const float* from, int64_t count, void* to);
void StoreFloats(ElementType type, const double* from, int64_t count, void* to);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_SHARDING_NARROW_FLOAT_H_
