// SPDX-License-Identifier: Apache-2.0
// Lane kernels of compare. Floats compare partially (with NaN only NE holds) or
// by total order: -NaN < -inf < .. < -0 < +0 < .. < inf < NaN.
#include <bit>
#include <complex>
#include <cstdint>
#include <type_traits>

#include "shardcall/kernels/math/sort_keys.h"
#include "shardcall/partitioner/runtime/lanes/isa.h"
#include "shardcall/partitioner/runtime/lanes/lane_kernel.h"

namespace shardcall {
inline namespace internal {
namespace {

struct Eq {
  template <typename T>
  static bool Do(T a, T b) {
    return a == b;
  }
};
struct Ne {
  template <typename T>
  static bool Do(T a, T b) {
    return a != b;
  }
};
struct Ge {
  template <typename T>
  static bool Do(T a, T b) {
    return a >= b;
  }
};
struct Gt {
  template <typename T>
  static bool Do(T a, T b) {
    return a > b;
  }
};
struct Le {
  template <typename T>
  static bool Do(T a, T b) {
    return a <= b;
  }
};
struct Lt {
  template <typename T>
  static bool Do(T a, T b) {
    return a < b;
  }
};

template <typename Op, typename T>
void Compare(const void* const* in, void* out, int64_t n, const int64_t*) {
  const T* a = static_cast<const T*>(in[0]);
  const T* b = static_cast<const T*>(in[1]);
  uint8_t* o = static_cast<uint8_t*>(out);
  SHARDCALL_LANES
  for (int64_t i = 0; i < n; ++i) o[i] = Op::Do(a[i], b[i]);
}

// Maps a float's bits to integers in total order.
template <typename T>
auto TotalOrderKey(T x) {
  using S = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;
  using U = std::make_unsigned_t<S>;
  const S bits = std::bit_cast<S>(x);
  return bits < 0 ? static_cast<S>(~static_cast<U>(bits) ^ (U{1} << (8 * sizeof(T) - 1))) : bits;
}
template <typename Op, typename T>
void CompareTotal(const void* const* in, void* out, int64_t n, const int64_t*) {
  const T* a = static_cast<const T*>(in[0]);
  const T* b = static_cast<const T*>(in[1]);
  uint8_t* o = static_cast<uint8_t*>(out);
  SHARDCALL_LANES
  for (int64_t i = 0; i < n; ++i) o[i] = Op::Do(TotalOrderKey(a[i]), TotalOrderKey(b[i]));
}

// Compares narrow floats of type params[0] by their bits.
template <typename Op, typename T>
void CompareNarrowTotal(const void* const* in, void* out, int64_t n, const int64_t* params) {
  const auto type = static_cast<ElementType>(params[0]);
  const T* a = static_cast<const T*>(in[0]);
  const T* b = static_cast<const T*>(in[1]);
  uint8_t* o = static_cast<uint8_t*>(out);
  for (int64_t i = 0; i < n; ++i) {
    o[i] = Op::Do(NarrowOrderKey(type, a[i]), NarrowOrderKey(type, b[i]));
  }
}

template <typename Op>
LaneFn Find(ElementType type, bool total) {
  if (IsNarrow(type)) {
    return ElementTypeBytes(type) == 1 ? CompareNarrowTotal<Op, uint8_t>
                                       : CompareNarrowTotal<Op, uint16_t>;
  }
  switch (type) {
    case ElementType::kPred:
    case ElementType::kU8: return BestWideForCpu<Compare<Op, uint8_t>>();
    case ElementType::kS8: return BestWideForCpu<Compare<Op, int8_t>>();
    case ElementType::kS16: return BestWideForCpu<Compare<Op, int16_t>>();
    case ElementType::kS32: return BestWideForCpu<Compare<Op, int32_t>>();
    case ElementType::kS64: return BestWideForCpu<Compare<Op, int64_t>>();
    case ElementType::kU16: return BestWideForCpu<Compare<Op, uint16_t>>();
    case ElementType::kU32: return BestWideForCpu<Compare<Op, uint32_t>>();
    case ElementType::kU64: return BestWideForCpu<Compare<Op, uint64_t>>();
    case ElementType::kF32:
      return total ? BestWideForCpu<CompareTotal<Op, float>>()
                   : BestWideForCpu<Compare<Op, float>>();
    case ElementType::kF64:
      return total ? BestWideForCpu<CompareTotal<Op, double>>()
                   : BestWideForCpu<Compare<Op, double>>();
    default: break;
  }
  if constexpr (std::is_same_v<Op, Eq> || std::is_same_v<Op, Ne>) {
    if (type == ElementType::kC64) return BestWideForCpu<Compare<Op, std::complex<float>>>();
    if (type == ElementType::kC128) return BestWideForCpu<Compare<Op, std::complex<double>>>();
  }
  return nullptr;
}

}  // namespace

LaneFn FindCompareFn(const CompareAttrs& attrs, ElementType type) {
  // The comparison type of integers may differ from the element type's sign.
  if (IsInteger(type)) {
    const bool is_signed = IsSignedInteger(type);
    if ((attrs.type == CompareType::kSigned && !is_signed) ||
        (attrs.type == CompareType::kUnsigned && is_signed)) {
      constexpr ElementType kOther[][2] = {{ElementType::kS8, ElementType::kU8},
                                           {ElementType::kS16, ElementType::kU16},
                                           {ElementType::kS32, ElementType::kU32},
                                           {ElementType::kS64, ElementType::kU64}};
      for (const auto& pair : kOther) {
        if (type == pair[is_signed ? 0 : 1]) {
          type = pair[is_signed ? 1 : 0];
          break;
        }
      }
    }
  }
  const bool total = attrs.type == CompareType::kTotalOrder;
  switch (attrs.direction) {
    case Direction::kEq: return Find<Eq>(type, total);
    case Direction::kNe: return Find<Ne>(type, total);
    case Direction::kGe: return Find<Ge>(type, total);
    case Direction::kGt: return Find<Gt>(type, total);
    case Direction::kLe: return Find<Le>(type, total);
    case Direction::kLt: return Find<Lt>(type, total);
  }
  return nullptr;
}

}  // namespace internal
}  // namespace shardcall
