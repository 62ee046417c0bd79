// SPDX-License-Identifier: Apache-2.0
// Attributes in the form that typed-FFI handlers read. It does not refer to the map afterwards.
#ifndef SHARDCALL_KERNELS_FFI_XLA_FFI_ATTRIBUTES_H_
#define SHARDCALL_KERNELS_FFI_XLA_FFI_ATTRIBUTES_H_

#include <deque>
#include <string>
#include <vector>

#include "shardcall/kernels/ffi/abi.h"
#include "shardcall/kernels/ffi/attributes.h"

namespace shardcall {
inline namespace internal {

class EncodedAttributes {
 public:
  explicit EncodedAttributes(const AttributeMapView& map) { Fill(map.entries(), &root_); }
  EncodedAttributes(const EncodedAttributes&) = delete;
  EncodedAttributes& operator=(const EncodedAttributes&) = delete;

  const abi::Attrs& root() const { return root_; }

 private:
  struct Columns {
    std::vector<abi::AttrType> types;
    std::vector<abi::ByteSpan*> names;
    std::vector<void*> values;
  };
  void Fill(const Attribute::Dictionary& entries, abi::Attrs* attrs);
  abi::ByteSpan* Span(const std::string& text);
  void* Encode(const Attribute& attribute, abi::AttrType* type);
  // The elements in their own width, aligned for any type.
  template <typename Get>
  const void* Elements(ElementType type, size_t count, Get bits);

  // Deques, so that elements never move.
  std::deque<std::string> strings_;
  std::deque<std::vector<uint64_t>> elements_;
  std::deque<abi::ByteSpan> spans_;
  std::deque<abi::Scalar> scalars_;
  std::deque<abi::Array> arrays_;
  std::deque<abi::Attrs> dictionaries_;
  std::deque<Columns> columns_;
  abi::Attrs root_ = {};
};

// The inverse: an owned copy of a frame's attributes. It does not refer to `attrs` afterwards.
Attribute::Dictionary DecodeAttributes(const abi::Attrs& attrs);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_KERNELS_FFI_XLA_FFI_ATTRIBUTES_H_
