// SPDX-License-Identifier: Apache-2.0
#include "shardcall/sharding/shape.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "shardcall/sharding/base/status.h"
#include "shardcall/sharding/shape_interner.h"
#include "shardcall/sharding/tuple_leaves.h"

namespace shardcall {
namespace {

// Every tuple is one, as only the interner makes shapes.
struct TupleShape : Shape {
  // FirstLeafOf() each element and the end; empty where every element is one leaf.
  absl::Span<const int> first_leaves;
};

// Products of sizes that were read from text may pass 2^63; they saturate at INT64_MAX.
int64_t SaturatingMultiply(int64_t a, int64_t b) {
  int64_t out;
  return __builtin_mul_overflow(a, b, &out) ? INT64_MAX : out;
}
int64_t SaturatingAdd(int64_t a, int64_t b) {
  int64_t out;
  return __builtin_add_overflow(a, b, &out) ? INT64_MAX : out;
}

int64_t NumElements(absl::Span<const int64_t> dims) {
  int64_t n = 1;
  for (int64_t d : dims) {
    if (d == 0) return 0;
    n = SaturatingMultiply(n, d == kUnboundedDim ? INT64_MAX : d);
  }
  return n;
}

uint64_t Hash(const ShapeInterner::Key& key) {
  uint64_t h = static_cast<uint64_t>(key.type) * 2 + key.has_layout;
  for (int64_t d : key.dims) h = MixHash(h, d);
  if (key.has_layout) {
    h = MixHash(h, 0x51);
    for (int64_t m : key.minor_to_major) h = MixHash(h, m);
    for (char c : key.layout_suffix) h = MixHash(h, static_cast<unsigned char>(c));
  }
  for (bool b : key.dynamic) h = MixHash(h, 0x77 + b);
  for (const Shape* s : key.tuple) h = MixHash(h, reinterpret_cast<uintptr_t>(s));
  return FinishHash(MixHash(h, key.dims.size()));
}

void AppendArray(const Shape& s, bool with_layout, std::string* out) {
  absl::StrAppend(out, ElementTypeName(s.element_type()), "[");
  for (int i = 0; i < s.rank(); ++i) {
    if (i > 0) out->push_back(',');
    if (s.dim(i) == kUnboundedDim) {
      out->push_back('?');
    } else {
      absl::StrAppend(out, s.IsDynamicDim(i) ? "<=" : "", s.dim(i));
    }
  }
  out->push_back(']');
  if (!with_layout || !s.has_layout()) return;
  absl::StrAppend(out, "{", absl::StrJoin(s.minor_to_major(), ","));
  if (!s.layout_suffix().empty()) absl::StrAppend(out, ":", s.layout_suffix());
  out->push_back('}');
}

}  // namespace

const Shape* ShapeInterner::Intern(const Key& key) {
  const uint64_t hash = Hash(key);
  const Shape* found = table_.Find(hash, [&](const Shape& s) {
    return s.type_ == key.type && s.has_layout_ == key.has_layout && s.dims_ == key.dims &&
           s.minor_to_major_ == key.minor_to_major && s.dynamic_ == key.dynamic &&
           s.layout_suffix_ == key.layout_suffix && s.tuple_ == key.tuple;
  });
  return found != nullptr ? found : Make(key, hash);
}

const Shape* ShapeInterner::Make(const Key& key, uint64_t hash) {
  TupleShape* const tuple = key.type == ElementType::kTuple ? arena_->New<TupleShape>() : nullptr;
  Shape* s = tuple != nullptr ? tuple : arena_->New<Shape>();
  s->type_ = key.type;
  s->has_layout_ = key.has_layout;
  s->dims_ = arena_->Copy(key.dims);
  s->dynamic_ = arena_->Copy(key.dynamic);
  s->minor_to_major_ = arena_->Copy(key.minor_to_major);
  s->layout_suffix_ = arena_->Copy(key.layout_suffix);
  s->tuple_ = arena_->Copy(key.tuple);
  s->hash_ = hash;
  s->bare_ = s;
  if (tuple != nullptr) {
    s->num_leaves_ = 0;
    bool bare = true;
    bool flat = true;
    for (const Shape* e : key.tuple) {
      s->num_leaves_ += e->num_leaves();
      flat = flat && !e->IsTuple();
      s->byte_size_ = SaturatingAdd(s->byte_size_, e->byte_size());
      bare = bare && e->bare() == e;
    }
    if (!flat) {
      std::vector<int> first = {0};
      first.reserve(key.tuple.size() + 1);
      for (const Shape* e : key.tuple) first.push_back(first.back() + e->num_leaves());
      tuple->first_leaves = arena_->Copy(absl::MakeConstSpan(first));
    }
    if (!bare) {
      std::vector<const Shape*> elements;
      for (const Shape* e : key.tuple) elements.push_back(e->bare());
      s->bare_ = Intern(Key{.type = key.type, .tuple = elements});
    }
  } else if (IsArrayType(key.type)) {
    s->num_elements_ = NumElements(key.dims);
    const int bits = ElementTypeBits(key.type);
    s->byte_size_ = bits % 8 == 0 ? SaturatingMultiply(s->num_elements_, bits / 8)
                                  : SaturatingAdd(SaturatingMultiply(s->num_elements_ / 8, bits),
                                                  (s->num_elements_ % 8 * bits + 7) / 8);
    if (key.has_layout) {
      s->bare_ = Intern(Key{.type = key.type, .dims = key.dims, .dynamic = key.dynamic});
    }
  } else if (key.type == ElementType::kBuffer) {
    s->num_elements_ = key.tuple[0]->num_elements();
    s->byte_size_ = key.tuple[0]->byte_size();
    const Shape* inner = key.tuple[0]->bare();
    if (inner != key.tuple[0]) {
      s->bare_ = Intern(Key{.type = key.type, .tuple = absl::MakeConstSpan(&inner, 1)});
    }
  }
  table_.Insert(hash, s);
  return s;
}

int internal::FirstLeafOf(const Shape& tuple, int element) {
  SHARDCALL_CHECK(tuple.IsTuple());
  const absl::Span<const int> first = static_cast<const TupleShape&>(tuple).first_leaves;
  return first.empty() ? element : first[element];
}

int internal::ElementOfLeaf(const Shape& tuple, int flat_index) {
  SHARDCALL_CHECK(tuple.IsTuple() && flat_index >= 0 && flat_index < tuple.num_leaves());
  const absl::Span<const int> first = static_cast<const TupleShape&>(tuple).first_leaves;
  if (first.empty()) return flat_index;
  // The last element that begins at or before the leaf: an element without leaves begins where the
  // one behind it does.
  return static_cast<int>(std::upper_bound(first.begin(), first.end(), flat_index) - first.begin() -
                          1);
}

const Shape* Shape::leaf(int flat_index) const {
  const Shape* s = this;
  while (s->IsTuple()) {
    const int element = ElementOfLeaf(*s, flat_index);
    flat_index -= FirstLeafOf(*s, element);
    s = s->tuple_[element];
  }
  SHARDCALL_CHECK(flat_index == 0);
  return s;
}

std::string Shape::ToString(bool with_layout) const {
  std::string out;
  // Tuples may nest deeply in text, so this keeps an explicit stack of (tuple, next element).
  std::vector<std::pair<const Shape*, size_t>> stack;
  const Shape* next = this;
  while (true) {
    if (next != nullptr) {
      if (next->IsTuple() || next->type_ == ElementType::kBuffer) {
        out += next->IsTuple() ? "(" : "b(";
        stack.push_back({next, 0});
      } else {
        AppendArray(*next, with_layout, &out);
      }
      next = nullptr;
    }
    if (stack.empty()) return out;
    auto& [tuple, index] = stack.back();
    if (index == tuple->tuple_.size()) {
      out.push_back(')');
      stack.pop_back();
      continue;
    }
    if (index > 0) out += ", ";
    if (index > 0 && index % 5 == 0) absl::StrAppend(&out, "/*index=", index, "*/");
    next = tuple->tuple_[index++];
  }
}

}  // namespace shardcall
