// SPDX-License-Identifier: Apache-2.0
#include "partitioner/runtime/sort_keys.h"

#include <algorithm>
#include <bit>

#include "sharding/narrow_float.h"

namespace shardcall {
namespace {

template <typename T>
void IntegerKeys(const void* elements, int64_t count, int64_t* keys) {
  const T* x = static_cast<const T*>(elements);
  for (int64_t i = 0; i < count; ++i) keys[i] = static_cast<int64_t>(x[i]);
}

int64_t FloatKey(double x) {
  const int64_t bits = std::bit_cast<int64_t>(x);
  return bits < 0 ? bits ^ INT64_MAX : bits;
}

}  // namespace

void OrderKeys(ElementType type, const void* elements, int64_t count, std::vector<int64_t>* keys) {
  keys->resize(count);
  int64_t* out = keys->data();
  switch (type) {
    case ElementType::kS16:
      return IntegerKeys<int16_t>(elements, count, out);
    case ElementType::kU16:
      return IntegerKeys<uint16_t>(elements, count, out);
    case ElementType::kS32:
      return IntegerKeys<int32_t>(elements, count, out);
    case ElementType::kU32:
      return IntegerKeys<uint32_t>(elements, count, out);
    case ElementType::kS64:
      return IntegerKeys<int64_t>(elements, count, out);
    case ElementType::kU64:
      IntegerKeys<uint64_t>(elements, count, out);
      for (int64_t i = 0; i < count; ++i) out[i] ^= INT64_MIN;
      return;
    default:
      break;
  }
  if (IsFloat(type)) {
    constexpr int64_t kBlock = 256;
    double block[kBlock];
    for (int64_t begin = 0; begin < count; begin += kBlock) {
      const int64_t n = std::min(kBlock, count - begin);
      LoadFloats(type, static_cast<const char*>(elements) + begin * ElementTypeBytes(type), n,
                 block);
      for (int64_t i = 0; i < n; ++i) out[begin + i] = FloatKey(block[i]);
    }
  } else if (IsSignedInteger(type)) {
    IntegerKeys<int8_t>(elements, count, out);
  } else {
    IntegerKeys<uint8_t>(elements, count, out);
  }
}

}  // namespace shardcall
