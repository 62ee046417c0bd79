// SPDX-License-Identifier: Apache-2.0
// Element types of HLO. The numbers are those of xla.PrimitiveType, which the
// typed FFI uses too.
#ifndef SHARDCALL_SHARDING_ELEMENT_TYPE_H_
#define SHARDCALL_SHARDING_ELEMENT_TYPE_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "shardcall/sharding/base/public.h"

namespace shardcall SHARDCALL_PUBLIC {

enum class ElementType : uint8_t {
  kInvalid = 0,
  kPred = 1,
  kS8 = 2,
  kS16 = 3,
  kS32 = 4,
  kS64 = 5,
  kU8 = 6,
  kU16 = 7,
  kU32 = 8,
  kU64 = 9,
  kF16 = 10,
  kF32 = 11,
  kF64 = 12,
  kTuple = 13,
  kOpaque = 14,
  kC64 = 15,
  kBF16 = 16,
  kToken = 17,
  kC128 = 18,
  kF8E5M2 = 19,
  kF8E4M3FN = 20,
  kS4 = 21,
  kU4 = 22,
  kF8E4M3B11FNUZ = 23,
  kF8E5M2FNUZ = 24,
  kF8E4M3FNUZ = 25,
  kS2 = 26,
  kU2 = 27,
  kF8E4M3 = 28,
  kF8E3M4 = 29,
  kS1 = 30,
  kU1 = 31,
  kF4E2M1FN = 32,
  kF8E8M0FNU = 33,
  kBuffer = 34,
  kF6E3M2FN = 35,
  kF6E2M3FN = 36,
};
inline constexpr int kNumElementTypes = 37;

// "f32", "pred", ...; the names of HLO text.
absl::string_view ElementTypeName(ElementType type);
// kInvalid if there is no such type.
ElementType ElementTypeFromName(absl::string_view name);

// Bits that one element has in HLO (s4: 4, pred: 8); 0 for tuple, token, opaque.
int ElementTypeBits(ElementType type);
// Bytes that one element takes in our host buffers and in npz files: types
// narrower than a byte take one byte each. 0 for tuple, token, opaque.
int ElementTypeBytes(ElementType type);

bool IsFloat(ElementType type);  // all f*, bf16
bool IsComplex(ElementType type);
// Floats narrower than f32: bf16, f16, the f8 kinds, f6 and f4.
inline bool IsNarrowFloat(ElementType type) {
  return IsFloat(type) && type != ElementType::kF32 && type != ElementType::kF64;
}
bool IsSignedInteger(ElementType type);
bool IsUnsignedInteger(ElementType type);  // without pred
inline bool IsInteger(ElementType t) { return IsSignedInteger(t) || IsUnsignedInteger(t); }
inline bool IsArrayType(ElementType t) {
  return t != ElementType::kInvalid && t != ElementType::kTuple && t != ElementType::kOpaque &&
         t != ElementType::kToken && t != ElementType::kBuffer;
}

}  // namespace shardcall

#endif  // SHARDCALL_SHARDING_ELEMENT_TYPE_H_
