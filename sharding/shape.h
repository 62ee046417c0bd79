// SPDX-License-Identifier: Apache-2.0
// Shapes: interned, immutable values owned by a Context. Two shapes of one
// Context are equal iff their pointers are, layouts included; bare() is the
// same shape without any layout, so `a->bare() == b->bare()` compares the rest.
#ifndef SHARDCALL_SHARDING_SHAPE_H_
#define SHARDCALL_SHARDING_SHAPE_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "shardcall/sharding/base/public.h"
#include "shardcall/sharding/element_type.h"

namespace shardcall {
inline namespace internal {
class ShapeInterner;
}  // namespace internal
}  // namespace shardcall

namespace shardcall SHARDCALL_PUBLIC {

// Bound of an unbounded dynamic dimension, `?` in text.
inline constexpr int64_t kUnboundedDim = INT64_MIN;

class Shape {
 public:
  ElementType element_type() const { return type_; }
  bool IsArray() const { return IsArrayType(type_); }
  bool IsTuple() const { return type_ == ElementType::kTuple; }
  bool IsToken() const { return type_ == ElementType::kToken; }

  // Arrays. Dynamic dimensions give their bound.
  int rank() const { return static_cast<int>(dims_.size()); }
  int64_t dim(int i) const { return dims_[i]; }
  absl::Span<const int64_t> dims() const { return dims_; }
  bool IsDynamicDim(int i) const { return !dynamic_.empty() && dynamic_[i]; }
  bool IsDynamic() const { return !dynamic_.empty(); }
  int64_t num_elements() const { return num_elements_; }  // 1 for scalars
  // Bytes of the dense array in HLO's sense (s4 counts half a byte, rounded up
  // over the array); the sum over the leaves for tuples.
  int64_t byte_size() const { return byte_size_; }

  // Layout: minor to major, empty if the text gave none (and for scalars).
  bool has_layout() const { return has_layout_; }
  absl::Span<const int64_t> minor_to_major() const { return minor_to_major_; }
  // The text after the colon of a layout in canonical order, e.g. "T(8,128)S(1)"; usually empty.
  absl::string_view layout_suffix() const { return layout_suffix_; }

  // Tuples.
  absl::Span<const Shape* const> tuple() const { return tuple_; }

  // Number of leaves (non-tuple shapes) in order; 1 for arrays and tokens.
  int num_leaves() const { return num_leaves_; }
  const Shape* leaf(int flat_index) const;

  const Shape* bare() const { return bare_; }

  std::string ToString(bool with_layout = true) const;  // HLO text

 private:
  friend class internal::ShapeInterner;
  ElementType type_ = ElementType::kInvalid;
  bool has_layout_ = false;
  int num_leaves_ = 1;
  int64_t num_elements_ = 1;
  int64_t byte_size_ = 0;
  absl::Span<const int64_t> dims_;
  absl::Span<const bool> dynamic_;
  absl::Span<const int64_t> minor_to_major_;
  absl::string_view layout_suffix_;
  absl::Span<const Shape* const> tuple_;
  const Shape* bare_ = nullptr;
  size_t hash_ = 0;
};

}  // namespace shardcall

#endif  // SHARDCALL_SHARDING_SHAPE_H_
