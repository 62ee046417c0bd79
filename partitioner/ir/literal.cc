// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/literal.h"

#include <cstring>

#include "shardcall/partitioner/ir/attributes_intern.h"
#include "shardcall/partitioner/ir/float_format.h"
#include "shardcall/sharding/base/intern_table.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
namespace {

struct LiteralTable {
  InternTable<Literal> table;
};

// Equal literals share one record, so constants compare by pointer.
const Literal* Intern(Context& context, const Literal& value) {
  InternTable<Literal>& table = context.Get<LiteralTable>().table;
  const absl::string_view bytes(value.data.data(), value.data.size());
  uint64_t h = MixHash(value.elided, reinterpret_cast<uintptr_t>(value.shape));
  h = ir_internal::HashText(h, bytes);
  for (const Literal* e : value.elements) h = MixHash(h, reinterpret_cast<uintptr_t>(e));
  h = FinishHash(h);
  const Literal* found = table.Find(h, [&](const Literal& l) {
    return l.shape == value.shape && l.elided == value.elided && l.elements == value.elements &&
           absl::string_view(l.data.data(), l.data.size()) == bytes;
  });
  if (found != nullptr) return found;
  Literal* made = context.arena().New<Literal>(value);
  if (!bytes.empty()) {
    // Aligned, so that readers may access the bytes as their element type.
    char* out = static_cast<char*>(context.arena().Allocate(bytes.size(), 16));
    std::memcpy(out, bytes.data(), bytes.size());
    made->data = absl::MakeConstSpan(out, bytes.size());
  } else {
    made->data = {};
  }
  made->elements = context.arena().Copy(value.elements);
  table.Insert(h, made);
  return made;
}

// A scalar from the low bytes of a bit pattern, little-endian as in host buffers.
const Literal* ScalarOfBits(Context& context, ElementType type, uint64_t bits, uint64_t high = 0) {
  char bytes[16];
  std::memcpy(bytes, &bits, 8);
  std::memcpy(bytes + 8, &high, 8);
  return MakeLiteral(context, context.MakeScalar(type),
                     absl::MakeConstSpan(bytes, ElementTypeBytes(type)));
}

uint64_t IntegerBits(ElementType type, int64_t value) {
  if (type == ElementType::kPred) return value != 0;
  const int bits = ElementTypeBits(type);
  if (bits >= 8) return static_cast<uint64_t>(value);
  // An element narrower than a byte has a byte of its own, sign-extended or zero-extended.
  const uint64_t mask = (uint64_t{1} << bits) - 1;
  uint64_t out = static_cast<uint64_t>(value) & mask;
  if (IsSignedInteger(type) && (out >> (bits - 1))) out |= ~mask & 0xff;
  return out;
}

}  // namespace

const Literal* MakeLiteral(Context& context, const Shape* shape, absl::Span<const char> data) {
  SHARDCALL_CHECK(shape->IsArray());
  SHARDCALL_CHECK(static_cast<int64_t>(data.size()) ==
                  shape->num_elements() * ElementTypeBytes(shape->element_type()));
  Literal value;
  value.shape = shape;
  value.data = data;
  return Intern(context, value);
}

const Literal* MakeTupleLiteral(Context& context, const Shape* shape,
                                absl::Span<const Literal* const> elements) {
  SHARDCALL_CHECK(shape->IsTuple() && shape->tuple().size() == elements.size());
  Literal value;
  value.shape = shape;
  value.elements = elements;
  return Intern(context, value);
}

const Literal* MakeElidedLiteral(Context& context, const Shape* shape) {
  Literal value;
  value.shape = shape;
  value.elided = true;
  return Intern(context, value);
}

const Literal* MakeScalarLiteral(Context& context, ElementType type, double value) {
  if (IsFloat(type)) return ScalarOfBits(context, type, EncodeFloat(type, value));
  if (type == ElementType::kC64) {
    return ScalarOfBits(context, type, EncodeFloat(ElementType::kF32, value));
  }
  if (type == ElementType::kC128) {
    return ScalarOfBits(context, type, EncodeFloat(ElementType::kF64, value));
  }
  if (type == ElementType::kPred) return ScalarOfBits(context, type, value != 0);
  // Round towards zero and clamp to 64 bits; NaN becomes 0.
  int64_t integer = 0;
  if (value >= 9223372036854775808.0) {
    integer = value < 18446744073709551616.0 ? static_cast<int64_t>(static_cast<uint64_t>(value))
                                             : (IsUnsignedInteger(type) ? -1 : INT64_MAX);
    if (IsSignedInteger(type)) integer = INT64_MAX;
  } else if (value < -9223372036854775808.0) {
    integer = INT64_MIN;
  } else if (value == value) {
    integer = static_cast<int64_t>(value);
  }
  return ScalarOfBits(context, type, IntegerBits(type, integer));
}

const Literal* MakeScalarIntLiteral(Context& context, ElementType type, int64_t value) {
  if (IsFloat(type) || IsComplex(type)) {
    return MakeScalarLiteral(context, type, static_cast<double>(value));
  }
  return ScalarOfBits(context, type, IntegerBits(type, value));
}

}  // namespace shardcall
