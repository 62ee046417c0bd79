// SPDX-License-Identifier: Apache-2.0
// Host tensors, the values of a running program. A tensor is an element type, dimensions and a
// shared, reference-counted buffer, dense and row-major in logical order, whatever layout HLO
// states. Types narrower than a byte take one byte per element (signed ones sign-extended, others
// zero-extended), pred takes one byte, 0 or 1. Copies are cheap and share the buffer;
// MutableData() copies it first unless this is the only owner.
#ifndef SHARDCALL_PARTITIONER_RUNTIME_TENSOR_H_
#define SHARDCALL_PARTITIONER_RUNTIME_TENSOR_H_

#include <atomic>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "shardcall/sharding/base/public.h"
#include "shardcall/sharding/element_type.h"

namespace shardcall SHARDCALL_PUBLIC {

using Dims = absl::InlinedVector<int64_t, 4>;

// A block of bytes with an intrusive count of owners.
class BufferRef {
 public:
  BufferRef() = default;
  static BufferRef Allocate(int64_t bytes);  // not initialised; aligned to 64 bytes
  BufferRef(const BufferRef& other) : block_(other.block_) {
    if (block_ != nullptr) block_->owners.fetch_add(1, std::memory_order_relaxed);
  }
  BufferRef(BufferRef&& other) noexcept : block_(std::exchange(other.block_, nullptr)) {}
  BufferRef& operator=(BufferRef other) noexcept {
    std::swap(block_, other.block_);
    return *this;
  }
  ~BufferRef() {
    if (block_ != nullptr && block_->owners.fetch_sub(1, std::memory_order_acq_rel) == 1) Free();
  }

  bool valid() const { return block_ != nullptr; }
  bool unique() const {
    return block_ != nullptr && block_->owners.load(std::memory_order_acquire) == 1;
  }
  char* data() const {
    return block_ == nullptr ? nullptr : reinterpret_cast<char*>(block_) + kHeaderBytes;
  }

 private:
  static constexpr size_t kHeaderBytes = 64;  // the data follows the header
  struct Block {
    std::atomic<int64_t> owners{1};
    size_t size = 0;  // with the header
  };
  void Free();
  Block* block_ = nullptr;
};

class Tensor {
 public:
  Tensor() = default;
  // Not initialised.
  Tensor(ElementType type, absl::Span<const int64_t> dims);
  static Tensor Zeros(ElementType type, absl::Span<const int64_t> dims);
  // `data` holds num_elements * ElementTypeBytes(type) bytes.
  static Tensor FromBytes(ElementType type, absl::Span<const int64_t> dims, const void* data);
  static Tensor Token() { return Tensor(ElementType::kToken, {}); }
  // A scalar of an integer type.
  static Tensor IntScalar(ElementType type, int64_t value);
  // From as many values as `dims` require, of the type's width: numbers of its kind, or unsigned
  // integers as its bits. E313 if they do not fit.
  template <typename T>
  static absl::StatusOr<Tensor> Create(ElementType type, absl::Span<const int64_t> dims,
                                       const std::vector<T>& values) {
    constexpr ValueKind kind = std::is_floating_point_v<T>                    ? ValueKind::kFloat
                               : std::is_integral_v<T> && std::is_signed_v<T> ? ValueKind::kSigned
                                                                              : ValueKind::kBits;
    return FromValues(type, dims, values.data(), values.size(), sizeof(T), kind);
  }
  // The same for literal values in code: if they do not fit, the result is a tensor without a
  // type, which no program accepts.
  template <typename T>
  static Tensor From(ElementType type, absl::Span<const int64_t> dims,
                     const std::vector<T>& values) {
    absl::StatusOr<Tensor> made = Create(type, dims, values);
    return made.ok() ? *std::move(made) : Tensor();
  }

  ElementType type() const { return type_; }
  const Dims& dims() const { return dims_; }
  int rank() const { return static_cast<int>(dims_.size()); }
  int64_t dim(int i) const { return dims_[i]; }
  int64_t num_elements() const { return num_elements_; }
  int element_bytes() const { return ElementTypeBytes(type_); }
  int64_t byte_size() const { return num_elements_ * element_bytes(); }

  const char* data() const { return buffer_.data(); }
  template <typename T>
  const T* data() const {
    return reinterpret_cast<const T*>(buffer_.data());
  }
  char* MutableData();
  template <typename T>
  T* MutableData() {
    return reinterpret_cast<T*>(MutableData());
  }
  // True if MutableData() will not copy.
  bool unique() const { return buffer_.unique(); }

  // The same bytes under another type and dims; requires equal byte sizes.
  Tensor As(ElementType type, absl::Span<const int64_t> dims) &&;
  Tensor As(ElementType type, absl::Span<const int64_t> dims) const& {
    return Tensor(*this).As(type, dims);
  }

 private:
  enum class ValueKind : uint8_t { kFloat, kSigned, kBits };
  static absl::StatusOr<Tensor> FromValues(ElementType type, absl::Span<const int64_t> dims,
                                           const void* values, size_t count, size_t bytes_each,
                                           ValueKind kind);

  ElementType type_ = ElementType::kInvalid;
  Dims dims_;
  int64_t num_elements_ = 0;
  BufferRef buffer_;
};

// The leaves of a possibly nested tuple, in flat order; one for an array.
using Value = std::vector<Tensor>;

// Same type, dims and bytes (so NaNs compare by their bits).
bool BitwiseEqual(const Tensor& a, const Tensor& b);
// "f32[2,3]".
std::string TypeAndDims(ElementType type, absl::Span<const int64_t> dims);
inline std::string TypeAndDims(const Tensor& t) { return TypeAndDims(t.type(), t.dims()); }
// Element of an integer or pred tensor as int64; u64 by its bits.
int64_t IntElement(const Tensor& t, int64_t index);

// Converts arbitrary bytes to the form above: pred to 0 or 1, sub-byte types to their sign- or
// zero-extended value. Other types are unchanged.
void NormalizeElements(ElementType type, void* data, int64_t count);

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_RUNTIME_TENSOR_H_
