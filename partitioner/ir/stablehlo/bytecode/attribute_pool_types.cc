// SPDX-License-Identifier: Apache-2.0
// The types of a pool.
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/ir/stablehlo/bytecode/attribute_pool.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace stablehlo {

bool AttributePool::HasType(const Shape* shape) {
  if (shape->IsToken()) return true;
  if (!shape->IsArray() || shape->IsDynamic()) return false;
  const ElementType t = shape->element_type();
  return t == ElementType::kPred || IsFloat(t) || IsComplex(t) ||
         (IsInteger(t) && ElementTypeBits(t) > 1);
}

uint32_t AttributePool::Integer(int bits, codes::Signedness signedness) {
  BytecodeSink s(codes::kInteger);
  s.VarInt(static_cast<uint64_t>(bits) << 2 | signedness);
  return AddBuiltin(&types_, s);
}

uint32_t AttributePool::Index() { return AddBuiltin(&types_, BytecodeSink(codes::kIndex)); }

uint32_t AttributePool::ElementTypeOf(ElementType type) {
  if (type == ElementType::kPred) return Integer(1);
  if (IsInteger(type)) {
    return Integer(ElementTypeBits(type),
                   IsUnsignedInteger(type) ? codes::kUnsigned : codes::kSignless);
  }
  if (IsComplex(type)) {
    BytecodeSink s(codes::kComplex);
    s.VarInt(ElementTypeOf(type == ElementType::kC64 ? ElementType::kF32 : ElementType::kF64));
    return AddBuiltin(&types_, s);
  }
  const auto plain = [&](codes::BuiltinType code) {
    return AddBuiltin(&types_, BytecodeSink(code));
  };
  if (type == ElementType::kF32) return plain(codes::kF32);
  if (type == ElementType::kF64) return plain(codes::kF64);
  if (type == ElementType::kF16) return plain(codes::kF16);
  if (type == ElementType::kBF16) return plain(codes::kBF16);
  // "f8E4M3FN": a text, since MLIR got codes for these types late.
  const absl::string_view name = ElementTypeName(type);
  BytecodeSink s;
  s.ZeroTerminated(absl::StrCat("f", absl::AsciiStrToUpper(name.substr(1))));
  return Add(&types_, kBuiltin, /*custom=*/false, s);
}

uint32_t AttributePool::Tensor(absl::Span<const int64_t> dims, uint32_t element) {
  BytecodeSink s(codes::kRankedTensor);
  s.SignedList(dims);
  s.VarInt(element);
  return AddBuiltin(&types_, s);
}

uint32_t AttributePool::Type(const Shape* shape) {
  SHARDCALL_CHECK(HasType(shape));
  if (const auto it = shape_types_.find(shape->bare()); it != shape_types_.end()) return it->second;
  uint32_t type;
  if (shape->IsToken()) {
    type = Add(&types_, kStablehlo, /*custom=*/true, BytecodeSink(codes::kTokenType));
  } else {
    type = Tensor(shape->dims(), ElementTypeOf(shape->element_type()));
  }
  return shape_types_[shape->bare()] = type;
}

uint32_t AttributePool::Function(absl::Span<const uint32_t> inputs,
                                 absl::Span<const uint32_t> results) {
  BytecodeSink s(codes::kFunction);
  for (const absl::Span<const uint32_t> list : {inputs, results}) {
    s.VarInt(list.size());
    for (uint32_t type : list) s.VarInt(type);
  }
  return AddBuiltin(&types_, s);
}

}  // namespace stablehlo
}  // namespace internal
}  // namespace shardcall
