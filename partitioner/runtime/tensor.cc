// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/runtime/tensor.h"

#include <cstdlib>
#include <cstring>
#include <new>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "shardcall/partitioner/runtime/buffer_pool.h"
#include "shardcall/partitioner/runtime/out_of_memory.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {

BufferRef BufferRef::Allocate(int64_t bytes) {
  size_t size = static_cast<size_t>(bytes) + kHeaderBytes;
  void* memory = BufferPool::Get().Allocate(&size);
  if (memory == nullptr) throw OutOfMemory(static_cast<uint64_t>(bytes));
  BufferRef ref;
  ref.block_ = new (memory) Block;
  ref.block_->size = size;
  return ref;
}

void BufferRef::Free() { BufferPool::Get().Free(block_, block_->size); }

Tensor::Tensor(ElementType type, absl::Span<const int64_t> dims)
    : type_(type), dims_(dims.begin(), dims.end()), num_elements_(1) {
  int64_t bytes = ElementTypeBytes(type);
  bool fits = true;
  for (int64_t d : dims) {
    num_elements_ *= d;
    fits = fits && !__builtin_mul_overflow(bytes, d, &bytes);
  }
  if (!fits && num_elements_ != 0) throw OutOfMemory(UINT64_MAX);
  if (IsArrayType(type)) buffer_ = BufferRef::Allocate(byte_size());
}

Tensor Tensor::Zeros(ElementType type, absl::Span<const int64_t> dims) {
  Tensor t(type, dims);
  if (t.buffer_.valid()) std::memset(t.buffer_.data(), 0, t.byte_size());
  return t;
}

Tensor Tensor::FromBytes(ElementType type, absl::Span<const int64_t> dims, const void* data) {
  Tensor t(type, dims);
  if (t.byte_size() > 0) std::memcpy(t.buffer_.data(), data, t.byte_size());
  return t;
}

absl::StatusOr<Tensor> Tensor::FromValues(ElementType type, absl::Span<const int64_t> dims,
                                          const void* values, size_t count, size_t bytes_each,
                                          ValueKind kind) {
  const auto misfit = [](absl::string_view what, std::string expected, std::string found) {
    return ToStatus({.code = "E313",
                     .message = absl::StrCat("values do not make an array: ", what),
                     .expected = std::move(expected),
                     .found = std::move(found),
                     .fix = "Give one value of the element type for each element"});
  };
  if (!IsArrayType(type)) {
    return misfit("no element type", "the type of an array", std::string(ElementTypeName(type)));
  }
  int64_t elements = 1;
  bool fits = true;
  for (int64_t d : dims) fits = fits && d >= 0 && !__builtin_mul_overflow(elements, d, &elements);
  if (!fits || static_cast<uint64_t>(elements) != count) {
    return misfit("another number", fits ? absl::StrCat(elements) : "dimensions of 0 or more",
                  absl::StrCat(count, " for ", TypeAndDims(type, dims)));
  }
  const bool kinds = kind == ValueKind::kFloat    ? IsFloat(type)
                     : kind == ValueKind::kSigned ? !IsFloat(type) && !IsComplex(type)
                                                  : true;
  if (!kinds || bytes_each != static_cast<size_t>(ElementTypeBytes(type))) {
    return misfit("another type",
                  absl::StrCat(ElementTypeName(type), ", ", ElementTypeBytes(type), " bytes each"),
                  absl::StrCat(kind == ValueKind::kFloat    ? "floating-point numbers"
                               : kind == ValueKind::kSigned ? "signed integers"
                                                            : "values",
                               " of ", bytes_each, " bytes"));
  }
  return FromBytes(type, dims, values);
}

Tensor Tensor::IntScalar(ElementType type, int64_t value) {
  Tensor t(type, {});
  std::memcpy(t.buffer_.data(), &value, t.byte_size());  // little endian
  return t;
}

char* Tensor::MutableData() {
  if (buffer_.valid() && !buffer_.unique()) {
    BufferRef copy = BufferRef::Allocate(byte_size());
    std::memcpy(copy.data(), buffer_.data(), byte_size());
    buffer_ = std::move(copy);
  }
  return buffer_.data();
}

Tensor Tensor::As(ElementType type, absl::Span<const int64_t> dims) && {
  Tensor t;
  t.type_ = type;
  t.dims_.assign(dims.begin(), dims.end());
  t.num_elements_ = 1;
  for (int64_t d : dims) t.num_elements_ *= d;
  SHARDCALL_CHECK(t.byte_size() == byte_size());
  t.buffer_ = std::move(buffer_);
  return t;
}

bool BitwiseEqual(const Tensor& a, const Tensor& b) {
  return a.type() == b.type() && a.dims() == b.dims() &&
         (a.byte_size() == 0 || std::memcmp(a.data(), b.data(), a.byte_size()) == 0);
}

std::string TypeAndDims(ElementType type, absl::Span<const int64_t> dims) {
  if (!IsArrayType(type)) return absl::StrCat(ElementTypeName(type), "[]");
  return absl::StrCat(ElementTypeName(type), "[", absl::StrJoin(dims, ","), "]");
}

int64_t IntElement(const Tensor& t, int64_t index) {
  switch (t.type()) {
    case ElementType::kS16: return t.data<int16_t>()[index];
    case ElementType::kU16: return t.data<uint16_t>()[index];
    case ElementType::kS32: return t.data<int32_t>()[index];
    case ElementType::kU32: return t.data<uint32_t>()[index];
    case ElementType::kS64:
    case ElementType::kU64: return t.data<int64_t>()[index];
    case ElementType::kS8:
    case ElementType::kS4:
    case ElementType::kS2:
    case ElementType::kS1: return t.data<int8_t>()[index];
    default: return t.data<uint8_t>()[index];
  }
}

void NormalizeElements(ElementType type, void* data, int64_t count) {
  uint8_t* bytes = static_cast<uint8_t*>(data);
  const int bits = ElementTypeBits(type);
  if (type == ElementType::kPred) {
    for (int64_t i = 0; i < count; ++i) bytes[i] = bytes[i] != 0;
  } else if (bits > 0 && bits < 8) {
    const uint8_t mask = static_cast<uint8_t>((1u << bits) - 1);
    const uint8_t sign = IsSignedInteger(type) ? static_cast<uint8_t>(1u << (bits - 1)) : 0;
    for (int64_t i = 0; i < count; ++i) {
      const uint8_t v = bytes[i] & mask;
      bytes[i] = static_cast<uint8_t>((v ^ sign) - sign);
    }
  }
}

}  // namespace shardcall
