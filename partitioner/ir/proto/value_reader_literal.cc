// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/ir/proto/literal_data.h"
#include "shardcall/partitioner/ir/proto/value_reader.h"

namespace shardcall {
inline namespace internal {
namespace hlo_proto {
namespace {

// The bytes of the values as in the message: elements narrower than a byte have a byte each, whose
// other bits are ignored.
struct Data {
  const char* bytes = nullptr;
  size_t size = 0;
};

Data DataOf(const hlo_pb::LiteralProto& p, ElementType type) {
  switch (type) {
#define SHARDCALL_CASE(name, field) \
  case ElementType::name: return {p.field().data(), p.field().size()};
    SHARDCALL_LITERAL_BYTES(SHARDCALL_CASE)
#undef SHARDCALL_CASE
#define SHARDCALL_CASE(name, field, per)                     \
  case ElementType::name:                                    \
    return {reinterpret_cast<const char*>(p.field().data()), \
            p.field().size() * sizeof(*p.field().data())};
    SHARDCALL_LITERAL_NUMBERS(SHARDCALL_CASE)
#undef SHARDCALL_CASE
    default: return {};
  }
}

}  // namespace

bool ValueReader::ReadLiteral(const hlo_pb::LiteralProto& p, absl::string_view field,
                              const Literal** out) {
  const Shape* shape;
  if (!ReadShape(p.shape(), absl::StrCat(field, ".shape"), &shape)) return false;
  if (p.shardcall_elided()) return *out = MakeElidedLiteral(context_, shape), true;
  if (shape->IsArray()) return ReadArrayLiteral(p, shape, field, out);
  if (!shape->IsTuple()) {
    return faults_.Fail("E011", "A literal of this type has no values", field,
                        "an array or a tuple", shape->ToString(false));
  }
  if (static_cast<size_t>(p.tuple_literals_size()) != shape->tuple().size()) {
    return faults_.Fail("E011", "A tuple literal has the wrong number of elements", field,
                        absl::StrCat(shape->tuple().size()), absl::StrCat(p.tuple_literals_size()));
  }
  absl::InlinedVector<const Literal*, 8> elements(shape->tuple().size());
  for (size_t k = 0; k < elements.size(); ++k) {
    const std::string at = absl::StrCat(field, ".tuple_literals[", k, "]");
    if (!ReadLiteral(p.tuple_literals(static_cast<int>(k)), at, &elements[k])) return false;
    if (elements[k]->shape->bare() != shape->tuple()[k]->bare()) {
      return faults_.Fail("E011", "An element's shape is not that of the tuple", at,
                          shape->tuple()[k]->ToString(false), elements[k]->shape->ToString(false));
    }
  }
  *out = MakeTupleLiteral(context_, shape, elements);
  return true;
}

bool ValueReader::ReadArrayLiteral(const hlo_pb::LiteralProto& p, const Shape* shape,
                                   absl::string_view field, const Literal** out) {
  const ElementType type = shape->element_type();
  const Data data = DataOf(p, type);
  const int width = ElementTypeBytes(type);
  const int64_t n = shape->num_elements();
  // Check the number of values before memory of that size is allocated.
  if (n < 0 || data.size % width != 0 || static_cast<int64_t>(data.size / width) != n) {
    return faults_.Fail(
        "E011", "A literal does not have the values that its shape asks for", field,
        absl::StrCat(n, " of ", shape->ToString(false)),
        absl::StrCat(data.size / width, data.size % width != 0 ? " and a part" : ""),
        data.size == 0 ? "write the module again with its large constants" : "");
  }
  const int bits = ElementTypeBits(type);
  if (bits >= 8) {
    *out = MakeLiteral(context_, shape, absl::MakeConstSpan(data.bytes, data.size));
    return true;
  }
  std::string values(data.bytes, data.size);
  const int mask = (1 << bits) - 1, sign = 1 << (bits - 1);
  for (char& c : values) {
    int value = c & mask;
    if (IsSignedInteger(type) && (value & sign) != 0) value |= ~mask;
    c = static_cast<char>(value);
  }
  *out = MakeLiteral(context_, shape, absl::MakeConstSpan(values.data(), values.size()));
  return true;
}

}  // namespace hlo_proto
}  // namespace internal
}  // namespace shardcall
