// SPDX-License-Identifier: Apache-2.0
// The table behind Context::MakeArray and the other Make functions. Internal to sharding/.
#ifndef SHARDCALL_SHARDING_SHAPE_INTERNER_H_
#define SHARDCALL_SHARDING_SHAPE_INTERNER_H_

#include "shardcall/sharding/base/intern_table.h"
#include "shardcall/sharding/context.h"

namespace shardcall {
inline namespace internal {

class ShapeInterner {
 public:
  explicit ShapeInterner(Arena* arena) : arena_(arena) {}

  // Everything that distinguishes shapes; the spans belong to the caller.
  struct Key {
    ElementType type = ElementType::kInvalid;
    bool has_layout = false;
    absl::Span<const int64_t> dims = {};
    absl::Span<const bool> dynamic = {};  // empty if all are static
    absl::Span<const int64_t> minor_to_major = {};
    absl::string_view layout_suffix = {};
    absl::Span<const Shape* const> tuple = {};
  };
  const Shape* Intern(const Key& key);

 private:
  const Shape* Make(const Key& key, uint64_t hash);
  Arena* arena_;
  InternTable<Shape> table_;
};

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_SHARDING_SHAPE_INTERNER_H_
