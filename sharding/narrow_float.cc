// SPDX-License-Identifier: Apache-2.0
#include "shardcall/sharding/narrow_float.h"

#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "shardcall/sharding/base/made_at_first_use.h"
#include "shardcall/sharding/base/status.h"

#if defined(__x86_64__) && defined(__GNUC__)
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace shardcall {
inline namespace internal {
namespace {

enum class Special : uint8_t {
  kIeee,          // IEEE 754: the largest exponent encodes infinity and NaN
  kOneNan,        // no infinity; all ones is NaN (the "fn" kinds)
  kUnsignedZero,  // no infinity, no -0; the bits of -0 are the one NaN ("fnuz")
  kFinite,        // neither infinity nor NaN
};

struct Format {
  int bits;
  int mantissa;
  int bias;
  Special special;

  uint32_t sign_bit() const { return 1u << (bits - 1); }
  uint32_t magnitude_mask() const { return sign_bit() - 1; }
  uint32_t infinity() const { return magnitude_mask() >> mantissa << mantissa; }  // kIeee
  uint32_t largest() const {
    if (special == Special::kIeee) return infinity() - 1;
    return special == Special::kOneNan ? magnitude_mask() - 1 : magnitude_mask();
  }
};

Format FormatOf(ElementType type) {
  switch (type) {
    case ElementType::kF16: return {16, 10, 15, Special::kIeee};
    case ElementType::kBF16: return {16, 7, 127, Special::kIeee};
    case ElementType::kF8E5M2: return {8, 2, 15, Special::kIeee};
    case ElementType::kF8E4M3: return {8, 3, 7, Special::kIeee};
    case ElementType::kF8E3M4: return {8, 4, 3, Special::kIeee};
    case ElementType::kF8E4M3FN: return {8, 3, 7, Special::kOneNan};
    case ElementType::kF8E4M3B11FNUZ: return {8, 3, 11, Special::kUnsignedZero};
    case ElementType::kF8E4M3FNUZ: return {8, 3, 8, Special::kUnsignedZero};
    case ElementType::kF8E5M2FNUZ: return {8, 2, 16, Special::kUnsignedZero};
    case ElementType::kF6E3M2FN: return {6, 2, 3, Special::kFinite};
    case ElementType::kF6E2M3FN: return {6, 3, 1, Special::kFinite};
    case ElementType::kF4E2M1FN: return {4, 1, 1, Special::kFinite};
    default: break;
  }
  SHARDCALL_CHECK(false && "not a narrow float type");
  return {};
}

double Decode(const Format& f, uint32_t bits) {
  const uint32_t magnitude = bits & f.magnitude_mask();
  const bool negative = bits & f.sign_bit();
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  switch (f.special) {
    case Special::kIeee:
      if (magnitude > f.infinity()) return negative ? -kNan : kNan;
      if (magnitude == f.infinity()) return negative ? -HUGE_VAL : HUGE_VAL;
      break;
    case Special::kOneNan:
      if (magnitude == f.magnitude_mask()) return negative ? -kNan : kNan;
      break;
    case Special::kUnsignedZero:
      if (negative && magnitude == 0) return kNan;
      break;
    case Special::kFinite: break;
  }
  const int exponent = static_cast<int>(magnitude >> f.mantissa);
  const double fraction = magnitude & ((1u << f.mantissa) - 1);
  const double one = 1u << f.mantissa;
  const double value = exponent == 0 ? std::ldexp(fraction / one, 1 - f.bias)
                                     : std::ldexp(1 + fraction / one, exponent - f.bias);
  return negative ? -value : value;
}

// v with its lowest `shift` bits rounded away, to nearest, ties to even.
uint64_t RoundShift(uint64_t v, int shift) {
  if (shift <= 0) return v << -shift;
  if (shift > 62) return 0;
  const uint64_t half = uint64_t{1} << (shift - 1);
  const uint64_t rest = v & ((uint64_t{1} << shift) - 1);
  const uint64_t kept = v >> shift;
  return kept + (rest > half || (rest == half && (kept & 1)));
}

uint32_t Encode(const Format& f, double value) {
  const uint64_t wide = std::bit_cast<uint64_t>(value);
  const uint32_t sign = wide >> 63 ? f.sign_bit() : 0;
  if (std::isnan(value)) {
    switch (f.special) {
      case Special::kIeee: return sign | f.infinity() | 1u << (f.mantissa - 1);
      case Special::kOneNan: return sign | f.magnitude_mask();
      case Special::kUnsignedZero: return f.sign_bit();
      case Special::kFinite: return sign ^ f.sign_bit();
    }
  }
  uint64_t bits = f.largest() + uint64_t{1};
  if (!std::isinf(value)) {
    const int biased = static_cast<int>(wide >> 52 & 0x7ff);
    const uint64_t fraction = wide & ((uint64_t{1} << 52) - 1);
    // Subnormals of f64 are far below every narrow type's least value.
    if (biased == 0) {
      bits = 0;
    } else {
      const int exponent = biased - 1023 + f.bias;
      const uint64_t significand = fraction | uint64_t{1} << 52;
      const int shift = 52 - f.mantissa;
      // A carry out of the mantissa runs into the exponent, as it should.
      bits = exponent >= 1 ? (static_cast<uint64_t>(exponent - 1) << f.mantissa) +
                                 RoundShift(significand, shift)
                           : RoundShift(significand, shift + 1 - exponent);
    }
  }
  if (bits > f.largest()) {
    switch (f.special) {
      case Special::kIeee: return sign | f.infinity();
      case Special::kOneNan: return sign | f.magnitude_mask();
      case Special::kUnsignedZero: return f.sign_bit();
      case Special::kFinite: return sign | f.largest();
    }
  }
  if (bits == 0 && f.special == Special::kUnsignedZero) return 0;
  return sign | static_cast<uint32_t>(bits);
}

double DecodeE8M0(uint32_t bits) {
  return bits == 0xff ? std::numeric_limits<double>::quiet_NaN()
                      : std::ldexp(1.0, static_cast<int>(bits) - 127);
}

uint32_t EncodeE8M0(double value) {
  if (!(value > 0) || std::isinf(value)) return 0xff;
  int exponent = 0;
  const double fraction = std::frexp(value, &exponent);  // value = fraction * 2^exponent, [1/2, 1)
  // 2^(exponent-1) <= value; on a tie the upper power of two is the even one.
  const int bits = exponent - 1 + 127 + (fraction >= 0.75 ? 1 : 0);
  if (bits <= 0) return 0;
  return bits >= 0xff ? 0xff : bits;
}

// Values of a type of at most 8 bits, by their bits.
std::array<float, 256> MakeTable(ElementType type) {
  std::array<float, 256> table;
  const uint32_t mask = (1u << ElementTypeBits(type)) - 1;
  for (uint32_t i = 0; i < 256; ++i) table[i] = static_cast<float>(FloatFromBits(type, i & mask));
  return table;
}

const std::array<float, 256>& TableOf(ElementType type) {
  const auto& tables = MadeAtFirstUse([] {
    auto* all = new std::array<std::array<float, 256>, kNumElementTypes>();
    for (int t = 0; t < kNumElementTypes; ++t) {
      const auto e = static_cast<ElementType>(t);
      if (IsFloat(e) && ElementTypeBits(e) <= 8) (*all)[t] = MakeTable(e);
    }
    return all;
  });
  return tables[static_cast<int>(type)];
}

// Without branches, so that compilers vectorise loops over it: choices by masks.
inline uint32_t Choose(bool condition, uint32_t yes, uint32_t no) {
  const uint32_t mask = 0u - static_cast<uint32_t>(condition);
  return (yes & mask) | (no & ~mask);
}

inline float DecodeF16(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16;
  const int32_t magnitude = bits & 0x7fff;
  const uint32_t shifted = static_cast<uint32_t>(magnitude) << 13;
  // The exponent of f16 is biased by 112 less than that of f32; the product corrects it, for
  // subnormals too.
  const float scaled = std::bit_cast<float>(shifted) * 0x1p112f;
  const uint32_t special = 0x7f800000u | shifted | Choose(magnitude > 0x7c00, 0x400000u, 0);
  return std::bit_cast<float>(
      sign | Choose(magnitude >= 0x7c00, special, std::bit_cast<uint32_t>(scaled)));
}

inline uint16_t EncodeF16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t magnitude = bits & 0x7fffffffu;
  const int32_t size = static_cast<int32_t>(magnitude);
  const uint32_t normal = (magnitude - 0x38000000u + 0xfffu + (magnitude >> 13 & 1)) >> 13;
  // Below 2^-14: adding 0.5 in f32 rounds at 2^-24, the smallest subnormal of f16.
  const float rounded = std::bit_cast<float>(magnitude) + 0.5f;
  const uint32_t small = std::bit_cast<uint32_t>(rounded) - 0x3f000000u;
  uint32_t result = Choose(size < 0x38800000, small, normal);
  result = Choose(size >= 0x477ff000, 0x7c00u, result);  // 65520 and above
  result = Choose(size > 0x7f800000, 0x7e00u, result);
  return static_cast<uint16_t>((bits >> 16 & 0x8000u) | result);
}

void DecodeLoop(const uint16_t* from, int64_t count, float* to) {
  for (int64_t i = 0; i < count; ++i) to[i] = DecodeF16(from[i]);
}
void EncodeLoop(const float* from, int64_t count, uint16_t* to) {
  for (int64_t i = 0; i < count; ++i) to[i] = EncodeF16(from[i]);
}

#if defined(__x86_64__) && defined(__GNUC__)
// Uses the processor's F16C conversions. They agree with the functions above except for the
// payload of a NaN that is converted to f16.
const bool has_f16c = [] {  // not every compiler knows "f16c" in __builtin_cpu_supports
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __builtin_cpu_supports("avx2") && __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C) != 0;
}();
__attribute__((target("avx2,f16c"))) void DecodeF16C(const uint16_t* from, int64_t count,
                                                     float* to) {
  int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    const __m128i half = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i));
    _mm256_storeu_ps(to + i, _mm256_cvtph_ps(half));
  }
  DecodeLoop(from + i, count - i, to + i);
}
__attribute__((target("avx2,f16c"))) void EncodeF16C(const float* from, int64_t count,
                                                     uint16_t* to) {
  const __m256 sign = _mm256_set1_ps(-0.0f);
  const __m256 nan = _mm256_set1_ps(std::numeric_limits<float>::quiet_NaN());
  int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    const __m256 x = _mm256_loadu_ps(from + i);
    const __m256 canonical = _mm256_or_ps(_mm256_and_ps(x, sign), nan);
    const __m256 value = _mm256_blendv_ps(x, canonical, _mm256_cmp_ps(x, x, _CMP_UNORD_Q));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i),
                     _mm256_cvtps_ph(value, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
  }
  EncodeLoop(from + i, count - i, to + i);
}
void DecodeF16s(const uint16_t* from, int64_t count, float* to) {
  has_f16c ? DecodeF16C(from, count, to) : DecodeLoop(from, count, to);
}
void EncodeF16s(const float* from, int64_t count, uint16_t* to) {
  has_f16c ? EncodeF16C(from, count, to) : EncodeLoop(from, count, to);
}
#else
void DecodeF16s(const uint16_t* from, int64_t count, float* to) { DecodeLoop(from, count, to); }
void EncodeF16s(const float* from, int64_t count, uint16_t* to) { EncodeLoop(from, count, to); }
#endif

template <typename T>
void Load(ElementType type, const void* from, int64_t count, T* to) {
  switch (type) {
    case ElementType::kF32: {
      const auto* p = static_cast<const float*>(from);
      for (int64_t i = 0; i < count; ++i) to[i] = static_cast<T>(p[i]);
      return;
    }
    case ElementType::kF64: {
      const auto* p = static_cast<const double*>(from);
      for (int64_t i = 0; i < count; ++i) to[i] = static_cast<T>(p[i]);
      return;
    }
    case ElementType::kBF16: {
      const auto* p = static_cast<const uint16_t*>(from);
      for (int64_t i = 0; i < count; ++i) to[i] = BF16ToFloat(p[i]);
      return;
    }
    case ElementType::kF16: {
      const auto* p = static_cast<const uint16_t*>(from);
      if constexpr (sizeof(T) == 4) {
        DecodeF16s(p, count, to);
      } else {
        for (int64_t i = 0; i < count; ++i) to[i] = DecodeF16(p[i]);
      }
      return;
    }
    default: {
      SHARDCALL_CHECK(IsFloat(type));
      const auto* p = static_cast<const uint8_t*>(from);
      const std::array<float, 256>& table = TableOf(type);
      for (int64_t i = 0; i < count; ++i) to[i] = table[p[i]];
    }
  }
}

template <typename T>
void Store(ElementType type, const T* from, int64_t count, void* to) {
  switch (type) {
    case ElementType::kF32: {
      auto* p = static_cast<float*>(to);
      for (int64_t i = 0; i < count; ++i) p[i] = static_cast<float>(from[i]);
      return;
    }
    case ElementType::kF64: {
      auto* p = static_cast<double*>(to);
      for (int64_t i = 0; i < count; ++i) p[i] = from[i];
      return;
    }
    case ElementType::kBF16: {
      auto* p = static_cast<uint16_t*>(to);
      for (int64_t i = 0; i < count; ++i) {
        if constexpr (sizeof(T) == 4)
          p[i] = FloatToBF16(from[i]);
        else
          p[i] = static_cast<uint16_t>(FloatToBits(type, from[i]));
      }
      return;
    }
    case ElementType::kF16: {
      auto* p = static_cast<uint16_t*>(to);
      if constexpr (sizeof(T) == 4) {
        EncodeF16s(from, count, p);
      } else {
        for (int64_t i = 0; i < count; ++i) {
          p[i] = static_cast<uint16_t>(FloatToBits(type, from[i]));
        }
      }
      return;
    }
    default: {
      SHARDCALL_CHECK(IsFloat(type));
      auto* p = static_cast<uint8_t*>(to);
      for (int64_t i = 0; i < count; ++i) p[i] = static_cast<uint8_t>(FloatToBits(type, from[i]));
    }
  }
}

}  // namespace

float F16ToFloat(uint16_t bits) { return DecodeF16(bits); }
uint16_t FloatToF16(float value) { return EncodeF16(value); }

double FloatFromBits(ElementType type, uint64_t bits) {
  switch (type) {
    case ElementType::kF32: return std::bit_cast<float>(static_cast<uint32_t>(bits));
    case ElementType::kF64: return std::bit_cast<double>(bits);
    case ElementType::kF8E8M0FNU: return DecodeE8M0(static_cast<uint32_t>(bits & 0xff));
    default: return Decode(FormatOf(type), static_cast<uint32_t>(bits));
  }
}

uint64_t FloatToBits(ElementType type, double value) {
  switch (type) {
    case ElementType::kF32: return std::bit_cast<uint32_t>(static_cast<float>(value));
    case ElementType::kF64: return std::bit_cast<uint64_t>(value);
    case ElementType::kF8E8M0FNU: return EncodeE8M0(value);
    default: return Encode(FormatOf(type), value);
  }
}

void LoadFloats(ElementType type, const void* from, int64_t count, float* to) {
  Load(type, from, count, to);
}
void LoadFloats(ElementType type, const void* from, int64_t count, double* to) {
  Load(type, from, count, to);
}
void StoreFloats(ElementType type, const float* from, int64_t count, void* to) {
  Store(type, from, count, to);
}
void StoreFloats(ElementType type, const double* from, int64_t count, void* to) {
  Store(type, from, count, to);
}

}  // namespace internal
}  // namespace shardcall
