// SPDX-License-Identifier: Apache-2.0
#include "collectives/narrow_float.h"

#include <Eigen/Core>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "sharding/status.h"

namespace shardcall {
namespace {

// How a format spends the codes that IEEE keeps for infinity and NaN.
enum class Specials {
  kIeee,      // infinity and NaN at the largest exponent
  kOnesNan,   // "FN": only all ones is NaN, no infinity
  kMinusNan,  // "FNUZ": the code of -0 is NaN, no infinity, no -0
  kNone,      // neither
};

struct Format {
  int exponent_bits;
  int mantissa_bits;
  int bias;
  Specials specials;

  constexpr uint32_t sign() const { return 1u << (exponent_bits + mantissa_bits); }
  constexpr uint32_t infinity() const { return ((1u << exponent_bits) - 1) << mantissa_bits; }
  constexpr uint32_t largest() const {
    if (specials == Specials::kIeee) return infinity() - 1;
    return sign() - (specials == Specials::kOnesNan ? 2 : 1);
  }
};

constexpr Format kF8E5M2{5, 2, 15, Specials::kIeee};
constexpr Format kF8E4M3{4, 3, 7, Specials::kIeee};
constexpr Format kF8E3M4{3, 4, 3, Specials::kIeee};
constexpr Format kF8E4M3Fn{4, 3, 7, Specials::kOnesNan};
constexpr Format kF8E4M3B11Fnuz{4, 3, 11, Specials::kMinusNan};
constexpr Format kF8E5M2Fnuz{5, 2, 16, Specials::kMinusNan};
constexpr Format kF8E4M3Fnuz{4, 3, 8, Specials::kMinusNan};
constexpr Format kF4E2M1Fn{2, 1, 1, Specials::kNone};
constexpr Format kF6E3M2Fn{3, 2, 3, Specials::kNone};
constexpr Format kF6E2M3Fn{2, 3, 1, Specials::kNone};

float DecodeOne(const Format& f, uint32_t code) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  const uint32_t magnitude = code & (f.sign() - 1);
  const bool negative = (code & f.sign()) != 0;
  if (f.specials == Specials::kMinusNan && negative && magnitude == 0) return kNan;
  if (magnitude > f.largest()) {
    if (f.specials != Specials::kIeee || magnitude != f.infinity()) return kNan;
    return negative ? -HUGE_VALF : HUGE_VALF;
  }
  const int exponent = static_cast<int>(magnitude >> f.mantissa_bits);
  const int mantissa = static_cast<int>(magnitude & ((1u << f.mantissa_bits) - 1));
  const int hidden = exponent == 0 ? 0 : 1 << f.mantissa_bits;
  const float value = std::ldexp(static_cast<float>(hidden + mantissa),
                                 (exponent == 0 ? 1 : exponent) - f.bias - f.mantissa_bits);
  return negative ? -value : value;
}

template <const Format& f>
uint8_t EncodeOne(float value) {
  constexpr int kDrop = 23 - f.mantissa_bits;
  constexpr uint32_t kMinNormal = static_cast<uint32_t>(128 - f.bias) << 23;
  // Adding it to a value below the smallest normal leaves the code in the low bits.
  constexpr float kMagic =
      std::bit_cast<float>(static_cast<uint32_t>(127 + 1 - f.bias - f.mantissa_bits + 23) << 23);
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t magnitude = bits & 0x7fffffffu;
  uint32_t sign = (bits >> 31) != 0 ? f.sign() : 0;
  uint32_t code;
  if (magnitude > 0x7f800000u) {
    switch (f.specials) {
      case Specials::kIeee:
        return static_cast<uint8_t>(sign | f.infinity() | 1u << (f.mantissa_bits - 1));
      case Specials::kOnesNan:
        return static_cast<uint8_t>(sign | (f.sign() - 1));
      case Specials::kMinusNan:
      case Specials::kNone:
        return static_cast<uint8_t>(f.sign());
    }
  }
  if (magnitude >= kMinNormal) {
    const uint32_t rounded = magnitude + ((1u << (kDrop - 1)) - 1) + ((magnitude >> kDrop) & 1);
    code = (rounded >> kDrop) - (static_cast<uint32_t>(127 - f.bias) << f.mantissa_bits);
  } else {
    code = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + kMagic) -
           std::bit_cast<uint32_t>(kMagic);
  }
  if (code > f.largest()) {
    switch (f.specials) {
      case Specials::kIeee:
        code = f.infinity();
        break;
      case Specials::kOnesNan:
        code = f.sign() - 1;
        break;
      case Specials::kMinusNan:
        return static_cast<uint8_t>(f.sign());
      case Specials::kNone:
        code = f.largest();
        break;
    }
  }
  if (f.specials == Specials::kMinusNan && code == 0) sign = 0;
  return static_cast<uint8_t>(sign | code);
}

template <const Format& f>
void Decode(const void* in, float* out, int64_t count) {
  static const std::array<float, 256> kTable = [] {
    std::array<float, 256> table;
    for (uint32_t i = 0; i < 256; ++i) table[i] = DecodeOne(f, i & (2 * f.sign() - 1));
    return table;
  }();
  const uint8_t* codes = static_cast<const uint8_t*>(in);
  for (int64_t i = 0; i < count; ++i) out[i] = kTable[codes[i]];
}

template <const Format& f>
void Encode(const float* in, void* out, int64_t count) {
  uint8_t* codes = static_cast<uint8_t*>(out);
  for (int64_t i = 0; i < count; ++i) codes[i] = EncodeOne<f>(in[i]);
}

template <typename T>
void DecodeWide(const void* in, float* out, int64_t count) {
  const T* values = static_cast<const T*>(in);
  for (int64_t i = 0; i < count; ++i) out[i] = static_cast<float>(values[i]);
}

template <typename T>
void EncodeWide(const float* in, void* out, int64_t count) {
  T* values = static_cast<T*>(out);
  for (int64_t i = 0; i < count; ++i) values[i] = static_cast<T>(in[i]);
}

struct Codec {
  void (*decode)(const void*, float*, int64_t) = nullptr;
  void (*encode)(const float*, void*, int64_t) = nullptr;
};

template <const Format& f>
constexpr Codec CodecOf() {
  return {&Decode<f>, &Encode<f>};
}

Codec FindCodec(ElementType type) {
  switch (type) {
    case ElementType::kBF16:
      return {&DecodeWide<Eigen::bfloat16>, &EncodeWide<Eigen::bfloat16>};
    case ElementType::kF16:
      return {&DecodeWide<Eigen::half>, &EncodeWide<Eigen::half>};
    case ElementType::kF8E5M2:
      return CodecOf<kF8E5M2>();
    case ElementType::kF8E4M3:
      return CodecOf<kF8E4M3>();
    case ElementType::kF8E3M4:
      return CodecOf<kF8E3M4>();
    case ElementType::kF8E4M3FN:
      return CodecOf<kF8E4M3Fn>();
    case ElementType::kF8E4M3B11FNUZ:
      return CodecOf<kF8E4M3B11Fnuz>();
    case ElementType::kF8E5M2FNUZ:
      return CodecOf<kF8E5M2Fnuz>();
    case ElementType::kF8E4M3FNUZ:
      return CodecOf<kF8E4M3Fnuz>();
    case ElementType::kF4E2M1FN:
      return CodecOf<kF4E2M1Fn>();
    case ElementType::kF6E3M2FN:
      return CodecOf<kF6E3M2Fn>();
    case ElementType::kF6E2M3FN:
      return CodecOf<kF6E2M3Fn>();
    default:
      return {};
  }
}

}  // namespace

bool IsNarrowFloat(ElementType type) { return FindCodec(type).decode != nullptr; }

void DecodeNarrowFloats(ElementType type, const void* in, float* out, int64_t count) {
  const Codec codec = FindCodec(type);
  SHARDCALL_CHECK(codec.decode != nullptr);
  codec.decode(in, out, count);
}

void EncodeNarrowFloats(ElementType type, const float* in, void* out, int64_t count) {
  const Codec codec = FindCodec(type);
  SHARDCALL_CHECK(codec.encode != nullptr);
  codec.encode(in, out, count);
}

}  // namespace shardcall
