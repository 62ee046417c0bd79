// SPDX-License-Identifier: Apache-2.0
// Types of the fields of attribute records (attributes.h). A field refers to memory of the caller
// until the record is interned, which copies it. Assigning a temporary, which would be gone at the
// end of the statement, does not compile:
//
//   DotAttrs dot;
//   dot.lhs_contracting = {1};                                    // refused
//   const int64_t one[] = {1};  dot.lhs_contracting = one;        // good
//
// CheckedBuilder::Dot also takes DotDimensions, which own their values.
#ifndef SHARDCALL_PARTITIONER_IR_ATTRIBUTE_FIELDS_H_
#define SHARDCALL_PARTITIONER_IR_ATTRIBUTE_FIELDS_H_

#include <cstdint>
#include <initializer_list>
#include <string>
#include <type_traits>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "shardcall/sharding/base/public.h"

namespace shardcall SHARDCALL_PUBLIC {

using Ints = absl::Span<const int64_t>;
using Text = absl::string_view;

template <typename T>
class Field : public absl::Span<const T> {
 public:
  using Base = absl::Span<const T>;
  Field() = default;
  Field(Base values) : Base(values) {}  // NOLINT: as a span converts
  template <typename C, typename = std::enable_if_t<std::is_lvalue_reference_v<C> &&
                                                    std::is_convertible_v<C, Base>>>
  Field(C&& values) : Base(values) {}  // NOLINT
  Field(std::initializer_list<T>) = delete;
  Field& operator=(std::initializer_list<T>) = delete;
  friend bool operator==(const Field& a, const Field& b) { return Base(a) == Base(b); }
  friend bool operator!=(const Field& a, const Field& b) { return !(a == b); }
};

class TextField : public Text {
 public:
  TextField() = default;
  TextField(Text text) : Text(text) {}                // NOLINT: as a string_view converts
  TextField(const char* text) : Text(text) {}         // NOLINT
  TextField(const std::string& text) : Text(text) {}  // NOLINT
  TextField(std::string&&) = delete;
};

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_ATTRIBUTE_FIELDS_H_
