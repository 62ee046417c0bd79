// SPDX-License-Identifier: Apache-2.0
#include "shardcall/kernels/ffi/xla/ffi_attributes.h"

#include <cstring>
#include <utility>

#include "shardcall/sharding/narrow_float.h"

namespace shardcall {
inline namespace internal {
namespace {

// The bits of one value, little-endian.
uint64_t Bits(ElementType type, int64_t i, double f) {
  return IsFloat(type) ? FloatToBits(type, f) : static_cast<uint64_t>(i);
}

// An element of an attribute, which has the width of its type.
AttributeScalar ReadScalar(ElementType type, const char* at) {
  const int bytes = ElementTypeBytes(type);
  uint64_t bits = 0;
  std::memcpy(&bits, at, bytes);
  AttributeScalar out;
  out.type = type;
  if (IsFloat(type)) {
    out.f = FloatFromBits(type, bits);
  } else {
    const int unused = 64 - 8 * bytes;
    out.i = IsSignedInteger(type) ? static_cast<int64_t>(bits << unused) >> unused
                                  : static_cast<int64_t>(bits);
  }
  return out;
}

Attribute Decode(abi::AttrType kind, const void* item) {
  switch (kind) {
    case abi::AttrType::kScalar: {
      const auto& s = *static_cast<const abi::Scalar*>(item);
      return {ReadScalar(static_cast<ElementType>(s.dtype), static_cast<const char*>(s.value))};
    }
    case abi::AttrType::kArray: {
      const auto& a = *static_cast<const abi::Array*>(item);
      AttributeArray out;
      out.type = static_cast<ElementType>(a.dtype);
      for (size_t k = 0; k < a.size; ++k) {
        const AttributeScalar one =
            ReadScalar(out.type, static_cast<const char*>(a.data) + k * ElementTypeBytes(out.type));
        if (IsFloat(out.type)) {
          out.floats.push_back(one.f);
        } else {
          out.ints.push_back(one.i);
        }
      }
      return {std::move(out)};
    }
    case abi::AttrType::kString: {
      const auto& s = *static_cast<const abi::ByteSpan*>(item);
      return {std::string(s.ptr, s.len)};
    }
    case abi::AttrType::kDictionary: break;
  }
  // The caller limits the depth, since it parsed them from text too.
  return {DecodeAttributes(*static_cast<const abi::Attrs*>(item))};
}

}  // namespace

Attribute::Dictionary DecodeAttributes(const abi::Attrs& attrs) {
  Attribute::Dictionary out;
  for (int64_t k = 0; k < attrs.size; ++k) {
    out.emplace_back(std::string(attrs.names[k]->ptr, attrs.names[k]->len),
                     Decode(attrs.types[k], attrs.attrs[k]));
  }
  return out;
}

template <typename Get>
const void* EncodedAttributes::Elements(ElementType type, size_t count, Get bits) {
  const size_t bytes = ElementTypeBytes(type);
  elements_.emplace_back((count * bytes + 7) / 8 + 1);  // never null, even when empty
  char* out = reinterpret_cast<char*>(elements_.back().data());
  for (size_t k = 0; k < count; ++k) {
    const uint64_t value = bits(k);
    std::memcpy(out + k * bytes, &value, bytes);
  }
  return out;
}

abi::ByteSpan* EncodedAttributes::Span(const std::string& text) {
  strings_.push_back(text);
  spans_.push_back({strings_.back().data(), strings_.back().size()});
  return &spans_.back();
}

void* EncodedAttributes::Encode(const Attribute& attribute, abi::AttrType* type) {
  if (const auto* s = absl::get_if<AttributeScalar>(&attribute.value)) {
    *type = abi::AttrType::kScalar;
    scalars_.push_back({static_cast<abi::DataType>(s->type),
                        Elements(s->type, 1, [&](size_t) { return Bits(s->type, s->i, s->f); })});
    return &scalars_.back();
  }
  if (const auto* a = absl::get_if<AttributeArray>(&attribute.value)) {
    *type = abi::AttrType::kArray;
    const bool floats = IsFloat(a->type);
    const size_t count = floats ? a->floats.size() : a->ints.size();
    arrays_.push_back(
        {static_cast<abi::DataType>(a->type), count, Elements(a->type, count, [&](size_t k) {
           return Bits(a->type, floats ? 0 : a->ints[k], floats ? a->floats[k] : 0);
         })});
    return &arrays_.back();
  }
  if (const auto* text = absl::get_if<std::string>(&attribute.value)) {
    *type = abi::AttrType::kString;
    return Span(*text);
  }
  *type = abi::AttrType::kDictionary;
  dictionaries_.push_back({});
  abi::Attrs* const nested = &dictionaries_.back();
  // The parser limits the depth.
  Fill(absl::get<Attribute::Dictionary>(attribute.value), nested);
  return nested;
}

void EncodedAttributes::Fill(const Attribute::Dictionary& entries, abi::Attrs* attrs) {
  columns_.emplace_back();
  Columns& columns = columns_.back();
  for (const auto& [name, value] : entries) {
    abi::AttrType type;
    void* const item = Encode(value, &type);
    columns.types.push_back(type);
    columns.names.push_back(Span(name));
    columns.values.push_back(item);
  }
  *attrs = {abi::kAttrsSize,
            nullptr,
            static_cast<int64_t>(entries.size()),
            columns.types.data(),
            columns.names.data(),
            columns.values.data()};
}

}  // namespace internal
}  // namespace shardcall
