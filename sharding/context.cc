// SPDX-License-Identifier: Apache-2.0
#include "shardcall/sharding/context.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "absl/container/inlined_vector.h"
#include "shardcall/sharding/base/status.h"
#include "shardcall/sharding/shape_interner.h"

namespace shardcall {
namespace {

constexpr size_t kBlockBytes = 64 << 10;

bool AnyDynamic(absl::Span<const bool> dynamic) {
  return std::find(dynamic.begin(), dynamic.end(), true) != dynamic.end();
}

}  // namespace

void* Arena::Allocate(size_t bytes, size_t alignment) {
  // Up to the next multiple of the alignment, which is a power of 2.
  const auto to_multiple = [&](const char* at) {
    return -reinterpret_cast<uintptr_t>(at) & (alignment - 1);
  };
  const size_t skip = to_multiple(next_);
  if (next_ != nullptr && skip + bytes <= left_) {
    char* out = next_ + skip;
    next_ = out + bytes;
    left_ -= skip + bytes;
    return out;
  }
  if (bytes > kBlockBytes / 4) {  // large data get a block of their own
    blocks_.push_back(std::make_unique_for_overwrite<char[]>(bytes + alignment));
    char* out = blocks_.back().get();
    return out + to_multiple(out);
  }
  blocks_.push_back(std::make_unique_for_overwrite<char[]>(kBlockBytes));
  next_ = blocks_.back().get();
  left_ = kBlockBytes;
  return Allocate(bytes, alignment);
}

absl::string_view Arena::Copy(absl::string_view text) {
  if (text.empty()) return {};
  char* out = static_cast<char*>(Allocate(text.size(), 1));
  std::memcpy(out, text.data(), text.size());
  return absl::string_view(out, text.size());
}

Context::Context() : shapes_(std::make_unique<ShapeInterner>(&arena_)) {}
Context::~Context() = default;

size_t Context::NewSlot() {
  static std::atomic<size_t> next{0};
  return next++;
}

// Buffer shapes hold an element shape, so they are made by MakeBuffer and never as an array.
static ElementType OfArray(ElementType type) {
  return type == ElementType::kBuffer ? ElementType::kInvalid : type;
}

const Shape* Context::MakeArray(ElementType type, absl::Span<const int64_t> dims) {
  return shapes_->Intern({.type = OfArray(type), .dims = dims});
}

const Shape* Context::MakeArray(ElementType type, absl::Span<const int64_t> dims,
                                absl::Span<const int64_t> minor_to_major,
                                absl::string_view layout_suffix, absl::Span<const bool> dynamic) {
  SHARDCALL_CHECK(minor_to_major.size() == dims.size());
  SHARDCALL_CHECK(dynamic.empty() || dynamic.size() == dims.size());
  if (!AnyDynamic(dynamic)) dynamic = {};
  // The only layout of a scalar carries no information, so the shape is that without a layout.
  const bool has_layout = !dims.empty() || !layout_suffix.empty();
  return shapes_->Intern({.type = OfArray(type),
                          .has_layout = has_layout,
                          .dims = dims,
                          .dynamic = dynamic,
                          .minor_to_major = minor_to_major,
                          .layout_suffix = layout_suffix});
}

const Shape* Context::MakeDynamicArray(ElementType type, absl::Span<const int64_t> dims,
                                       absl::Span<const bool> dynamic) {
  SHARDCALL_CHECK(dynamic.empty() || dynamic.size() == dims.size());
  if (!AnyDynamic(dynamic)) dynamic = {};
  return shapes_->Intern({.type = OfArray(type), .dims = dims, .dynamic = dynamic});
}

const Shape* Context::MakeTuple(absl::Span<const Shape* const> elements) {
  return shapes_->Intern({.type = ElementType::kTuple, .tuple = elements});
}

const Shape* Context::MakeBuffer(const Shape* element) {
  return shapes_->Intern({.type = ElementType::kBuffer, .tuple = absl::MakeConstSpan(&element, 1)});
}

const Shape* Context::MakeToken() { return shapes_->Intern({.type = ElementType::kToken}); }
const Shape* Context::MakeOpaque() { return shapes_->Intern({.type = ElementType::kOpaque}); }

const Shape* Context::WithDims(const Shape* shape, absl::Span<const int64_t> dims) {
  SHARDCALL_CHECK(shape->IsArray() && shape->rank() == static_cast<int>(dims.size()));
  absl::InlinedVector<bool, 8> dynamic;
  if (shape->IsDynamic()) {
    for (int i = 0; i < shape->rank(); ++i) dynamic.push_back(shape->IsDynamicDim(i));
  }
  return shapes_->Intern({.type = shape->element_type(),
                          .has_layout = shape->has_layout(),
                          .dims = dims,
                          .dynamic = dynamic,
                          .minor_to_major = shape->minor_to_major(),
                          .layout_suffix = shape->layout_suffix()});
}

const Shape* Context::WithElementType(const Shape* shape, ElementType type) {
  SHARDCALL_CHECK(shape->IsArray() && IsArrayType(type));
  absl::InlinedVector<bool, 8> dynamic;
  if (shape->IsDynamic()) {
    for (int i = 0; i < shape->rank(); ++i) dynamic.push_back(shape->IsDynamicDim(i));
  }
  return shapes_->Intern({.type = type,
                          .has_layout = shape->has_layout(),
                          .dims = shape->dims(),
                          .dynamic = dynamic,
                          .minor_to_major = shape->minor_to_major(),
                          .layout_suffix = shape->layout_suffix()});
}

const Shape* Context::WithDefaultLayout(const Shape* shape) {
  if (shape->IsArray()) {
    if (shape->has_layout() || shape->rank() == 0) return shape;
    absl::InlinedVector<int64_t, 8> layout;
    absl::InlinedVector<bool, 8> dynamic;
    for (int i = shape->rank() - 1; i >= 0; --i) layout.push_back(i);
    if (shape->IsDynamic()) {
      for (int i = 0; i < shape->rank(); ++i) dynamic.push_back(shape->IsDynamicDim(i));
    }
    return MakeArray(shape->element_type(), shape->dims(), layout, "", dynamic);
  }
  if (!shape->IsTuple()) return shape;
  // Nested tuples without recursion: children are finished before their parent.
  struct Frame {
    const Shape* tuple;
    std::vector<const Shape*> done;
  };
  std::vector<Frame> stack = {{shape, {}}};
  while (true) {
    Frame& top = stack.back();
    if (top.done.size() < top.tuple->tuple().size()) {
      const Shape* e = top.tuple->tuple()[top.done.size()];
      if (e->IsTuple()) {
        stack.push_back({e, {}});
      } else {
        top.done.push_back(WithDefaultLayout(e));
      }
      continue;
    }
    const Shape* made = MakeTuple(top.done);
    stack.pop_back();
    if (stack.empty()) return made;
    stack.back().done.push_back(made);
  }
}

absl::string_view Context::Intern(absl::string_view text) {
  auto it = strings_.find(text);
  if (it != strings_.end()) return it->second;
  // The empty text also needs a data pointer of its own.
  const absl::string_view copy = text.empty() ? absl::string_view("", 0) : arena_.Copy(text);
  strings_.emplace(copy, copy);
  return copy;
}

}  // namespace shardcall
