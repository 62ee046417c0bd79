// SPDX-License-Identifier: Apache-2.0
#include "shardcall/kernels/host/element_io.h"

#include <complex>
#include <type_traits>
#include <vector>

#include "shardcall/sharding/base/status.h"
#include "shardcall/sharding/narrow_float.h"

namespace shardcall {
inline namespace internal {
namespace {

template <typename T>
struct IsComplexNumber : std::false_type {};
template <typename T>
struct IsComplexNumber<std::complex<T>> : std::true_type {};

template <typename From, typename T>
void LoadAs(const void* from, int64_t count, T* to) {
  const auto* p = static_cast<const From*>(from);
  for (int64_t i = 0; i < count; ++i) {
    if constexpr (IsComplexNumber<T>::value && !IsComplexNumber<From>::value) {
      to[i] = T(static_cast<typename T::value_type>(p[i]), 0);
    } else {
      to[i] = static_cast<T>(p[i]);
    }
  }
}

// Calls f with a value of the C++ integer type that stores `type`.
template <typename F>
bool WithInteger(ElementType type, F f) {
  switch (type) {
    case ElementType::kPred: return f(bool()), true;
    case ElementType::kS1:
    case ElementType::kS2:
    case ElementType::kS4:
    case ElementType::kS8: return f(int8_t()), true;
    case ElementType::kS16: return f(int16_t()), true;
    case ElementType::kS32: return f(int32_t()), true;
    case ElementType::kS64: return f(int64_t()), true;
    case ElementType::kU1:
    case ElementType::kU2:
    case ElementType::kU4:
    case ElementType::kU8: return f(uint8_t()), true;
    case ElementType::kU16: return f(uint16_t()), true;
    case ElementType::kU32: return f(uint32_t()), true;
    case ElementType::kU64: return f(uint64_t()), true;
    default: return false;
  }
}

// v modulo 2^bits, sign-extended for signed types.
template <typename Int, typename T>
Int Wrap(ElementType type, T v) {
  const int bits = ElementTypeBits(type);
  if (bits >= 8) return static_cast<Int>(v);
  const auto low = static_cast<uint8_t>(static_cast<uint64_t>(v) << (8 - bits));
  if (IsSignedInteger(type)) return static_cast<Int>(static_cast<int8_t>(low) >> (8 - bits));
  return static_cast<Int>(low >> (8 - bits));
}

}  // namespace

template <typename T>
bool IsStoredAs(ElementType type) {
  if constexpr (std::is_same_v<T, float>) return type == ElementType::kF32;
  if constexpr (std::is_same_v<T, double>) return type == ElementType::kF64;
  if constexpr (std::is_same_v<T, std::complex<float>>) return type == ElementType::kC64;
  if constexpr (std::is_same_v<T, std::complex<double>>) return type == ElementType::kC128;
  if constexpr (std::is_same_v<T, bool>) return type == ElementType::kPred;
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
    return IsInteger(type) && ElementTypeBytes(type) == sizeof(T);
  }
  return false;
}

template <typename T>
void LoadElements(ElementType type, const void* from, int64_t count, T* to) {
  if (WithInteger(type, [&](auto zero) { LoadAs<decltype(zero)>(from, count, to); })) return;
  if constexpr (std::is_floating_point_v<T>) {
    LoadFloats(type, from, count, to);
  } else if constexpr (IsComplexNumber<T>::value) {
    if (type == ElementType::kC64) return LoadAs<std::complex<float>>(from, count, to);
    if (type == ElementType::kC128) return LoadAs<std::complex<double>>(from, count, to);
    std::vector<typename T::value_type> real(count);
    LoadFloats(type, from, count, real.data());
    for (int64_t i = 0; i < count; ++i) to[i] = real[i];
  } else {
    SHARDCALL_CHECK(false && "floats are not read as integers");
  }
}

template <typename T>
void StoreElements(ElementType type, const T* from, int64_t count, void* to) {
  if constexpr (std::is_floating_point_v<T>) {
    StoreFloats(type, from, count, to);
  } else if constexpr (IsComplexNumber<T>::value) {
    auto store = [&](auto* p) {
      for (int64_t i = 0; i < count; ++i) p[i] = std::remove_pointer_t<decltype(p)>(from[i]);
    };
    if (type == ElementType::kC64) return store(static_cast<std::complex<float>*>(to));
    SHARDCALL_CHECK(type == ElementType::kC128);
    store(static_cast<std::complex<double>*>(to));
  } else {
    SHARDCALL_CHECK(WithInteger(type, [&](auto zero) {
      using Int = decltype(zero);
      auto* p = static_cast<Int*>(to);
      for (int64_t i = 0; i < count; ++i) p[i] = Wrap<Int>(type, from[i]);
    }));
  }
}

#define SHARDCALL_ELEMENT_IO(T)                                         \
  template bool IsStoredAs<T>(ElementType);                             \
  template void LoadElements<T>(ElementType, const void*, int64_t, T*); \
  template void StoreElements<T>(ElementType, const T*, int64_t, void*)
SHARDCALL_ELEMENT_IO(float);
SHARDCALL_ELEMENT_IO(double);
SHARDCALL_ELEMENT_IO(std::complex<float>);
SHARDCALL_ELEMENT_IO(std::complex<double>);
SHARDCALL_ELEMENT_IO(uint32_t);
SHARDCALL_ELEMENT_IO(uint64_t);
SHARDCALL_ELEMENT_IO(bool);
#undef SHARDCALL_ELEMENT_IO

}  // namespace internal
}  // namespace shardcall
