// SPDX-License-Identifier: Apache-2.0
// Context: owner of every interned value (shapes, axis lists, shardings,
// states, rules, strings) of one partition call. Not locked: two threads use
// two Contexts. Modules hold a shared_ptr to theirs; runtime programs hold none.
#ifndef SHARDCALL_SHARDING_CONTEXT_H_
#define SHARDCALL_SHARDING_CONTEXT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "shardcall/sharding/base/public.h"
#include "shardcall/sharding/shape.h"

namespace shardcall {
inline namespace internal {
class ShapeInterner;
}  // namespace internal
}  // namespace shardcall

namespace shardcall SHARDCALL_PUBLIC {

// Bump allocator for trivially destructible data.
class Arena {
 public:
  void* Allocate(size_t bytes, size_t alignment);
  template <typename T>
  absl::Span<const T> Copy(absl::Span<const T> values) {
    static_assert(std::is_trivially_destructible_v<T>);
    if (values.empty()) return {};
    T* out = static_cast<T*>(Allocate(sizeof(T) * values.size(), alignof(T)));
    for (size_t i = 0; i < values.size(); ++i) new (out + i) T(values[i]);
    return absl::Span<const T>(out, values.size());
  }
  absl::string_view Copy(absl::string_view text);
  template <typename T, typename... A>
  T* New(A&&... args) {
    static_assert(std::is_trivially_destructible_v<T>);
    return new (Allocate(sizeof(T), alignof(T))) T(std::forward<A>(args)...);
  }

 private:
  std::vector<std::unique_ptr<char[]>> blocks_;
  char* next_ = nullptr;
  size_t left_ = 0;
};

class Context {
 public:
  Context();
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  Arena& arena() { return arena_; }

  // Interns. The spans are copied.
  const Shape* MakeArray(ElementType type, absl::Span<const int64_t> dims);
  // With a layout; `minor_to_major` has one entry per dimension. `dynamic` is
  // empty or has one entry per dimension.
  const Shape* MakeArray(ElementType type, absl::Span<const int64_t> dims,
                         absl::Span<const int64_t> minor_to_major,
                         absl::string_view layout_suffix = "", absl::Span<const bool> dynamic = {});
  // Without a layout but with dynamic dimensions.
  const Shape* MakeDynamicArray(ElementType type, absl::Span<const int64_t> dims,
                                absl::Span<const bool> dynamic);
  const Shape* MakeScalar(ElementType type) { return MakeArray(type, {}); }
  const Shape* MakeTuple(absl::Span<const Shape* const> elements);
  const Shape* MakeBuffer(const Shape* element);  // `b(f32[4])`; tuple()[0] is the element
  const Shape* MakeToken();
  const Shape* MakeOpaque();
  // Same layout (minor to major, suffix), other dims of the same rank.
  const Shape* WithDims(const Shape* shape, absl::Span<const int64_t> dims);
  const Shape* WithElementType(const Shape* shape, ElementType type);
  // Descending layout where an array has none; tuples element by element.
  const Shape* WithDefaultLayout(const Shape* shape);

  // Interned text: equal text gives the same data pointer. Lives as long as
  // the Context.
  absl::string_view Intern(absl::string_view text);

  // One value of type T per Context, made on first use. Other libraries keep their interning
  // tables here, so this header does not name them. T is default constructible.
  template <typename T>
  T& Get() {
    static const size_t index = NewSlot();
    if (index >= slots_.size() || slots_[index] == nullptr) {
      std::shared_ptr<void> made(new T, [](void* p) { delete static_cast<T*>(p); });
      if (index >= slots_.size()) slots_.resize(index + 1);
      slots_[index] = std::move(made);
    }
    return *static_cast<T*>(slots_[index].get());
  }

 private:
  static size_t NewSlot();

  Arena arena_;
  std::unique_ptr<ShapeInterner> shapes_;
  absl::flat_hash_map<absl::string_view, absl::string_view> strings_;
  // Indexed by the number that a type gets on its first Get in the process.
  std::vector<std::shared_ptr<void>> slots_;
};

}  // namespace shardcall

#endif  // SHARDCALL_SHARDING_CONTEXT_H_
