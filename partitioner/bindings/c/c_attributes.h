// SPDX-License-Identifier: Apache-2.0
// The attribute functions of the structs of the C interface: get_int, get_float, get_bool and
// get_string return 0 and leave `value` unchanged if the attribute does not exist or has another
// kind.
#ifndef SHARDCALL_PARTITIONER_BINDINGS_C_C_ATTRIBUTES_H_
#define SHARDCALL_PARTITIONER_BINDINGS_C_C_ATTRIBUTES_H_

#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "shardcall/kernels/ffi/attributes.h"

namespace shardcall {
inline namespace internal {

// The attributes of a dictionary; none if the text is not a dictionary and so is to be read as
// text.
inline AttributeMapView AttributesOrNone(absl::string_view text) {
  absl::StatusOr<AttributeMapView> map = AttributeMapView::Parse(text);
  return map.ok() ? *std::move(map) : AttributeMapView();
}

// `kMap` returns the attributes of a struct.
template <typename C, const AttributeMapView& (*kMap)(const C*)>
class CAttributes {
 public:
  static void Fill(C* c) {
    c->get_int = Int;
    c->get_float = Float;
    c->get_bool = Bool;
    c->get_string = String;
  }

 private:
  template <typename T>
  static const T* Find(const C* c, const char* name) {
    const Attribute* a = c == nullptr || name == nullptr ? nullptr : kMap(c).Find(name);
    return a == nullptr ? nullptr : absl::get_if<T>(&a->value);
  }
  static int Int(const C* c, const char* name, int64_t* value) {
    const auto* s = Find<AttributeScalar>(c, name);
    if (s == nullptr || !IsInteger(s->type) || value == nullptr) return 0;
    *value = s->i;
    return 1;
  }
  static int Float(const C* c, const char* name, double* value) {
    const auto* s = Find<AttributeScalar>(c, name);
    if (s == nullptr || !IsFloat(s->type) || value == nullptr) return 0;
    *value = s->f;
    return 1;
  }
  static int Bool(const C* c, const char* name, int* value) {
    const auto* s = Find<AttributeScalar>(c, name);
    if (s == nullptr || s->type != ElementType::kPred || value == nullptr) return 0;
    *value = s->i != 0;
    return 1;
  }
  static int String(const C* c, const char* name, const char** value, size_t* size) {
    const auto* s = Find<std::string>(c, name);
    if (s == nullptr || value == nullptr || size == nullptr) return 0;
    *value = s->data();
    *size = s->size();
    return 1;
  }
};

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_BINDINGS_C_C_ATTRIBUTES_H_
