// SPDX-License-Identifier: Apache-2.0
#include "partitioner/ir/narrow_float.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "sharding/status.h"

namespace shardcall {
namespace {

using Special = FloatFormat::Special;
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// Exact while |e| stays within what a double can scale to, which holds for all
// formats of at most 16 bits.
double Scale(double mantissa, int e) { return std::ldexp(mantissa, e); }

uint64_t SignBit(const FloatFormat& f) {
  return uint64_t{1} << (f.exponent_bits + f.mantissa_bits);
}
// Largest finite magnitude's pattern.
uint64_t MaxFinite(const FloatFormat& f) {
  const uint64_t all = SignBit(f) - 1;
  switch (f.special) {
    case Special::kIeee: return ((all >> f.mantissa_bits) << f.mantissa_bits) - 1;
    case Special::kFn:
    case Special::kE8m0: return all - 1;
    case Special::kFnuz:
    case Special::kFinite: return all;
  }
  return all;
}
uint64_t Overflow(const FloatFormat& f) {
  switch (f.special) {
    case Special::kIeee: return MaxFinite(f) + 1;
    case Special::kFn: return MaxFinite(f) + 1;
    case Special::kFnuz: return SignBit(f);
    case Special::kFinite: return MaxFinite(f);
    case Special::kE8m0: return 0xff;
  }
  return 0;
}
uint64_t QuietNan(const FloatFormat& f, bool negative) {
  const uint64_t sign = negative ? SignBit(f) : 0;
  switch (f.special) {
    case Special::kIeee:
      return sign | (MaxFinite(f) + 1) | (uint64_t{1} << (f.mantissa_bits - 1));
    case Special::kFn: return sign | (SignBit(f) - 1);
    case Special::kFnuz: return SignBit(f);
    case Special::kFinite: return SignBit(f);  // XLA reads nan as -0 there
    case Special::kE8m0: return 0xff;
  }
  return 0;
}

uint64_t EncodeE8m0(double value) {
  if (!(value > 0) || value == kInf) return 0xff;
  int e;
  const double m = std::frexp(value, &e);  // value = m * 2^e, 0.5 <= m < 1
  // Nearest power of two; halfway (m = 0.75) goes to the even exponent code.
  int code = e - 1 + 127;
  if (m > 0.75 || (m == 0.75 && (code & 1))) ++code;
  if (code < 0) return 0;
  return code > 254 ? 0xff : static_cast<uint64_t>(code);
}

uint64_t EncodeNarrow(const FloatFormat& f, double value) {
  if (f.special == Special::kE8m0) return EncodeE8m0(value);
  const bool negative = std::signbit(value);
  if (std::isnan(value)) return QuietNan(f, negative);
  const uint64_t sign = negative ? SignBit(f) : 0;
  const double a = std::fabs(value);
  if (a == 0) return f.special == Special::kFnuz ? 0 : sign;
  if (a == kInf) return sign | Overflow(f);
  int e;
  std::frexp(a, &e);
  // Unit in the last place: of the normal range, or the subnormal one below it.
  const int exponent = std::max(e - 1, 1 - f.bias);
  const double units = std::nearbyint(Scale(a, f.mantissa_bits - exponent));
  // units counts from 2^mantissa_bits (normal) or less (subnormal); a carry into
  // the next exponent is the right pattern by itself.
  const uint64_t bits = (static_cast<uint64_t>(exponent + f.bias - 1) << f.mantissa_bits) +
                        static_cast<uint64_t>(units);
  if (bits > MaxFinite(f)) return f.special == Special::kFnuz ? SignBit(f) : sign | Overflow(f);
  if (bits == 0 && f.special == Special::kFnuz) return 0;
  return sign | bits;
}

double DecodeNarrow(const FloatFormat& f, uint64_t bits) {
  if (f.special == Special::kE8m0) {
    return bits == 0xff ? kNan : Scale(1, static_cast<int>(bits) - 127);
  }
  const bool negative = bits & SignBit(f);
  const uint64_t magnitude = bits & (SignBit(f) - 1);
  const uint64_t exponent = magnitude >> f.mantissa_bits;
  const uint64_t mantissa = magnitude & ((uint64_t{1} << f.mantissa_bits) - 1);
  double out;
  if (f.special == Special::kFnuz && negative && magnitude == 0) {
    out = kNan;
  } else if (magnitude > MaxFinite(f)) {
    out = f.special == Special::kIeee && mantissa == 0 ? kInf : kNan;
  } else if (exponent == 0) {
    out = Scale(static_cast<double>(mantissa), 1 - f.bias - f.mantissa_bits);
  } else {
    out = Scale(static_cast<double>(mantissa | (uint64_t{1} << f.mantissa_bits)),
                static_cast<int>(exponent) - f.bias - f.mantissa_bits);
  }
  return negative ? -out : out;
}

}  // namespace

const FloatFormat& GetFloatFormat(ElementType type) {
  static constexpr FloatFormat kF64 = {11, 52, 1023, Special::kIeee};
  static constexpr FloatFormat kF32 = {8, 23, 127, Special::kIeee};
  static constexpr FloatFormat kF16 = {5, 10, 15, Special::kIeee};
  static constexpr FloatFormat kBf16 = {8, 7, 127, Special::kIeee};
  static constexpr FloatFormat kE5m2 = {5, 2, 15, Special::kIeee};
  static constexpr FloatFormat kE4m3 = {4, 3, 7, Special::kIeee};
  static constexpr FloatFormat kE3m4 = {3, 4, 3, Special::kIeee};
  static constexpr FloatFormat kE4m3fn = {4, 3, 7, Special::kFn};
  static constexpr FloatFormat kE4m3b11fnuz = {4, 3, 11, Special::kFnuz};
  static constexpr FloatFormat kE5m2fnuz = {5, 2, 16, Special::kFnuz};
  static constexpr FloatFormat kE4m3fnuz = {4, 3, 8, Special::kFnuz};
  static constexpr FloatFormat kE8m0fnu = {8, 0, 127, Special::kE8m0};
  static constexpr FloatFormat kE2m1fn = {2, 1, 1, Special::kFinite};
  static constexpr FloatFormat kE3m2fn = {3, 2, 3, Special::kFinite};
  static constexpr FloatFormat kE2m3fn = {2, 3, 1, Special::kFinite};
  switch (type) {
    case ElementType::kF64: return kF64;
    case ElementType::kF32: return kF32;
    case ElementType::kF16: return kF16;
    case ElementType::kBF16: return kBf16;
    case ElementType::kF8E5M2: return kE5m2;
    case ElementType::kF8E4M3: return kE4m3;
    case ElementType::kF8E3M4: return kE3m4;
    case ElementType::kF8E4M3FN: return kE4m3fn;
    case ElementType::kF8E4M3B11FNUZ: return kE4m3b11fnuz;
    case ElementType::kF8E5M2FNUZ: return kE5m2fnuz;
    case ElementType::kF8E4M3FNUZ: return kE4m3fnuz;
    case ElementType::kF8E8M0FNU: return kE8m0fnu;
    case ElementType::kF4E2M1FN: return kE2m1fn;
    case ElementType::kF6E3M2FN: return kE3m2fn;
    case ElementType::kF6E2M3FN: return kE2m3fn;
    default: break;
  }
  SHARDCALL_CHECK(IsFloat(type));
  return kF64;
}

double DecodeFloat(ElementType type, uint64_t bits) {
  if (type == ElementType::kF64) {
    double d;
    std::memcpy(&d, &bits, 8);
    return d;
  }
  if (type == ElementType::kF32 || type == ElementType::kBF16) {
    const uint32_t word = static_cast<uint32_t>(type == ElementType::kF32 ? bits : bits << 16);
    float f;
    std::memcpy(&f, &word, 4);
    return f;
  }
  return DecodeNarrow(GetFloatFormat(type), bits);
}

uint64_t EncodeFloat(ElementType type, double value) {
  if (type == ElementType::kF64) {
    uint64_t bits;
    std::memcpy(&bits, &value, 8);
    return bits;
  }
  if (type == ElementType::kF32) {
    const float f = static_cast<float>(value);
    uint32_t bits;
    std::memcpy(&bits, &f, 4);
    return bits;
  }
  // f16 and bf16 round through f32, as XLA's conversion does.
  if (type == ElementType::kF16 || type == ElementType::kBF16) value = static_cast<float>(value);
  return EncodeNarrow(GetFloatFormat(type), value);
}

}  // namespace shardcall
