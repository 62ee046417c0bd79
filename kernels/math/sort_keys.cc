// SPDX-License-Identifier: Apache-2.0
#include "shardcall/kernels/math/sort_keys.h"

namespace shardcall {
inline namespace internal {
namespace {

template <typename T>
void IntegerKeys(const void* elements, int64_t count, int64_t* keys) {
  const T* x = static_cast<const T*>(elements);
  for (int64_t i = 0; i < count; ++i) keys[i] = static_cast<int64_t>(x[i]);
}

// The keys of f32 and f64, from their bits.
template <typename T, T kMagnitude>
void FloatKeys(const void* elements, int64_t count, int64_t* keys) {
  const T* x = static_cast<const T*>(elements);
  for (int64_t i = 0; i < count; ++i) keys[i] = x[i] < 0 ? x[i] ^ kMagnitude : x[i];
}
template <typename T>
void NarrowKeys(ElementType type, const void* elements, int64_t count, int64_t* keys) {
  const T* x = static_cast<const T*>(elements);
  for (int64_t i = 0; i < count; ++i) keys[i] = NarrowOrderKey(type, x[i]);
}

}  // namespace

void OrderKeys(ElementType type, const void* elements, int64_t count, std::vector<int64_t>* keys) {
  keys->resize(count);
  int64_t* out = keys->data();
  switch (type) {
    case ElementType::kS16: return IntegerKeys<int16_t>(elements, count, out);
    case ElementType::kU16: return IntegerKeys<uint16_t>(elements, count, out);
    case ElementType::kS32: return IntegerKeys<int32_t>(elements, count, out);
    case ElementType::kU32: return IntegerKeys<uint32_t>(elements, count, out);
    case ElementType::kS64: return IntegerKeys<int64_t>(elements, count, out);
    case ElementType::kU64:
      IntegerKeys<uint64_t>(elements, count, out);
      for (int64_t i = 0; i < count; ++i) out[i] ^= INT64_MIN;
      return;
    case ElementType::kF32: return FloatKeys<int32_t, INT32_MAX>(elements, count, out);
    case ElementType::kF64: return FloatKeys<int64_t, INT64_MAX>(elements, count, out);
    default: break;
  }
  if (IsFloat(type)) {
    if (ElementTypeBits(type) == 16) return NarrowKeys<uint16_t>(type, elements, count, out);
    NarrowKeys<uint8_t>(type, elements, count, out);
  } else if (IsSignedInteger(type)) {
    IntegerKeys<int8_t>(elements, count, out);
  } else {
    IntegerKeys<uint8_t>(elements, count, out);
  }
}

}  // namespace internal
}  // namespace shardcall
