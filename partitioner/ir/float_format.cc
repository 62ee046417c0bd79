// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/float_format.h"

#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {

using Special = FloatFormat::Special;

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

}  // namespace internal
}  // namespace shardcall
