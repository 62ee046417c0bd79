// SPDX-License-Identifier: Apache-2.0
// Lane kernels of convert between machine types. Float to integer truncates,
// saturates and takes NaN to 0; integer to integer wraps; to pred is x != 0.
#include <complex>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "shardcall/partitioner/runtime/lanes/isa.h"
#include "shardcall/partitioner/runtime/lanes/lane_kernel.h"

namespace shardcall {
inline namespace internal {
namespace {

struct Pred {};

template <typename From, typename To>
To ToInteger(From x, From low, From high, To min, To max) {
  // `high` is the first value that is too large.
  return x != x ? To{0} : (x >= high ? max : (x < low ? min : static_cast<To>(x)));
}

template <typename From, typename To>
auto ConvertOne(From x) {
  if constexpr (std::is_same_v<To, Pred>) {
    return static_cast<uint8_t>(x != From{0});
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    constexpr From low = static_cast<From>(std::numeric_limits<To>::min());
    constexpr From high = static_cast<From>(std::numeric_limits<To>::max() / 2 + 1) * From{2};
    return ToInteger<From, To>(x, low, high, std::numeric_limits<To>::min(),
                               std::numeric_limits<To>::max());
  } else {
    return static_cast<To>(x);
  }
}

template <typename From, typename To>
void Convert(const void* const* in, void* out, int64_t n, const int64_t*) {
  const From* a = static_cast<const From*>(in[0]);
  auto* o = static_cast<decltype(ConvertOne<From, To>(From{}))*>(out);
  SHARDCALL_LANES
  for (int64_t i = 0; i < n; ++i) o[i] = ConvertOne<From, To>(a[i]);
}

// To integers of fewer than 8 bits, saturating; stored as a byte.
template <typename From, int kMin, int kMax>
void ConvertToFewBits(const void* const* in, void* out, int64_t n, const int64_t*) {
  const From* a = static_cast<const From*>(in[0]);
  int8_t* o = static_cast<int8_t*>(out);
  SHARDCALL_LANES
  for (int64_t i = 0; i < n; ++i) {
    o[i] = ToInteger<From, int8_t>(a[i], From{kMin}, From{kMax + 1}, kMin, kMax);
  }
}
template <typename From>
LaneFn FindToFewBits(ElementType to) {
  switch (to) {
    case ElementType::kS4: return ConvertToFewBits<From, -8, 7>;
    case ElementType::kS2: return ConvertToFewBits<From, -2, 1>;
    case ElementType::kS1: return ConvertToFewBits<From, -1, 0>;
    case ElementType::kU4: return ConvertToFewBits<From, 0, 15>;
    case ElementType::kU2: return ConvertToFewBits<From, 0, 3>;
    case ElementType::kU1: return ConvertToFewBits<From, 0, 1>;
    default: return nullptr;
  }
}

template <typename From, typename R>
void ToComplex(const void* const* in, void* out, int64_t n, const int64_t*) {
  const From* a = static_cast<const From*>(in[0]);
  R* o = static_cast<R*>(out);
  SHARDCALL_LANES
  for (int64_t i = 0; i < n; ++i) {
    const R real = static_cast<R>(a[i]);  // read first: s64 to c64 is done in place
    o[2 * i] = real;
    o[2 * i + 1] = R{0};
  }
}
template <typename From, typename To>
void ComplexToComplex(const void* const* in, void* out, int64_t n, const int64_t*) {
  const From* a = static_cast<const From*>(in[0]);
  To* o = static_cast<To*>(out);
  for (int64_t i = 0; i < 2 * n; ++i) o[i] = static_cast<To>(a[i]);
}

template <typename From>
LaneFn FindFrom(ElementType to) {
  switch (to) {
    case ElementType::kPred: return BestForCpu<Convert<From, Pred>>();
    case ElementType::kS8: return BestForCpu<Convert<From, int8_t>>();
    case ElementType::kS16: return BestForCpu<Convert<From, int16_t>>();
    case ElementType::kS32: return BestForCpu<Convert<From, int32_t>>();
    case ElementType::kS64: return BestForCpu<Convert<From, int64_t>>();
    case ElementType::kU8: return BestForCpu<Convert<From, uint8_t>>();
    case ElementType::kU16: return BestForCpu<Convert<From, uint16_t>>();
    case ElementType::kU32: return BestForCpu<Convert<From, uint32_t>>();
    case ElementType::kU64: return BestForCpu<Convert<From, uint64_t>>();
    case ElementType::kF32: return BestForCpu<Convert<From, float>>();
    case ElementType::kF64: return BestForCpu<Convert<From, double>>();
    case ElementType::kC64: return ToComplex<From, float>;
    case ElementType::kC128: return ToComplex<From, double>;
    default:
      if constexpr (std::is_floating_point_v<From>) return FindToFewBits<From>(to);
      return nullptr;
  }
}

}  // namespace

LaneFn FindConvertFn(ElementType from, ElementType to) {
  switch (from) {
    case ElementType::kPred:
    case ElementType::kU8: return FindFrom<uint8_t>(to);
    case ElementType::kS8: return FindFrom<int8_t>(to);
    case ElementType::kS16: return FindFrom<int16_t>(to);
    case ElementType::kS32: return FindFrom<int32_t>(to);
    case ElementType::kS64: return FindFrom<int64_t>(to);
    case ElementType::kU16: return FindFrom<uint16_t>(to);
    case ElementType::kU32: return FindFrom<uint32_t>(to);
    case ElementType::kU64: return FindFrom<uint64_t>(to);
    case ElementType::kF32: return FindFrom<float>(to);
    case ElementType::kF64: return FindFrom<double>(to);
    case ElementType::kC64:
      if (to == ElementType::kC128) return ComplexToComplex<float, double>;
      return nullptr;
    case ElementType::kC128:
      if (to == ElementType::kC64) return ComplexToComplex<double, float>;
      return nullptr;
    default: return nullptr;
  }
}

}  // namespace internal
}  // namespace shardcall
