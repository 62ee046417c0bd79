// SPDX-License-Identifier: Apache-2.0
// Hash, equality and deep copy of records that list their fields in Fields(),
// and the interner built on them. Used by attributes.cc, which instantiates it
// for every attribute struct, and by module.cc for metadata.
#ifndef SHARDCALL_PARTITIONER_IR_ATTRIBUTES_INTERN_H_
#define SHARDCALL_PARTITIONER_IR_ATTRIBUTES_INTERN_H_

#include <cstdint>
#include <cstring>
#include <tuple>
#include <type_traits>
#include <utility>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "shardcall/partitioner/ir/attributes.h"
#include "shardcall/partitioner/ir/ids.h"
#include "shardcall/sharding/base/intern_table.h"
#include "shardcall/sharding/context.h"

namespace shardcall {
inline namespace internal {
namespace ir_internal {

template <typename T>
struct IsSpan : std::false_type {};
template <typename T>
struct IsSpan<Field<T>> : std::true_type {};
template <typename T>
struct IsSpan<absl::Span<T>> : std::true_type {};
template <typename T>
constexpr bool kIsText = std::is_base_of_v<absl::string_view, T>;
template <typename T>
struct IsId : std::false_type {};
template <typename Tag>
struct IsId<StrongId<Tag>> : std::true_type {};

inline uint64_t HashText(uint64_t h, absl::string_view text) {
  const char* p = text.data();
  size_t n = text.size();
  h = MixHash(h, n);
  for (; n >= 8; n -= 8, p += 8) {
    uint64_t word;
    std::memcpy(&word, p, 8);
    h = MixHash(h, word);
  }
  if (n > 0) {
    uint64_t word = 0;
    std::memcpy(&word, p, n);
    h = MixHash(h, word);
  }
  return h;
}

template <typename T>
uint64_t HashField(uint64_t h, const T& value) {
  if constexpr (kIsText<T>) {
    return HashText(h, value);
  } else if constexpr (IsSpan<T>::value) {
    h = MixHash(h, value.size());
    for (const auto& v : value) h = HashField(h, v);
    return h;
  } else if constexpr (IsId<T>::value) {
    return MixHash(h, value.value);
  } else if constexpr (std::is_same_v<T, double>) {
    uint64_t bits;
    std::memcpy(&bits, &value, 8);
    return MixHash(h, bits);
  } else if constexpr (std::is_pointer_v<T>) {
    return MixHash(h, reinterpret_cast<uintptr_t>(value));
  } else if constexpr (std::is_integral_v<T> || std::is_enum_v<T>) {
    return MixHash(h, static_cast<uint64_t>(value));
  } else {
    value.Fields([&h](const auto&... f) { ((h = HashField(h, f)), ...); });
    return h;
  }
}

template <typename T>
bool EqualField(const T& a, const T& b) {
  if constexpr (kIsText<T>) {
    return a == b;
  } else if constexpr (IsSpan<T>::value) {
    if (a.size() != b.size()) return false;
    for (size_t i = 0; i < a.size(); ++i) {
      if (!EqualField(a[i], b[i])) return false;
    }
    return true;
  } else if constexpr (std::is_same_v<T, double>) {
    return std::memcmp(&a, &b, 8) == 0;
  } else if constexpr (std::is_class_v<T> && !IsId<T>::value) {
    bool equal = true;
    a.Fields([&](const auto&... fa) {
      b.Fields([&](const auto&... fb) {
        if constexpr (sizeof...(fa) == sizeof...(fb)) {
          equal = (EqualField(fa, fb) && ...);
        }
      });
    });
    return equal;
  } else {
    return a == b;
  }
}

template <typename T>
void CopyField(Arena& arena, T& value) {
  if constexpr (kIsText<T>) {
    value = arena.Copy(value);
  } else if constexpr (IsSpan<T>::value) {
    using Element = std::remove_const_t<typename T::value_type>;
    if constexpr (std::is_class_v<Element> && !IsId<Element>::value) {
      if (value.empty()) return;
      auto* out =
          static_cast<Element*>(arena.Allocate(sizeof(Element) * value.size(), alignof(Element)));
      for (size_t i = 0; i < value.size(); ++i) {
        new (out + i) Element(value[i]);
        CopyField(arena, out[i]);
      }
      value = absl::Span<const Element>(out, value.size());
    } else {
      value = arena.Copy(value);
    }
  } else if constexpr (std::is_class_v<T> && !IsId<T>::value) {
    value.Fields([&arena](auto&... f) { (CopyField(arena, f), ...); });
  }
}

}  // namespace ir_internal
}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_ATTRIBUTES_INTERN_H_
