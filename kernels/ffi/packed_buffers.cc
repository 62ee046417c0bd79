// SPDX-License-Identifier: Apache-2.0
#include "shardcall/kernels/ffi/packed_buffers.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace shardcall {
inline namespace internal {
namespace {

// Copies are aligned as buffers are elsewhere.
constexpr size_t kAlignment = 64;

bool IsOther(const BufferView& b, bool packed) {
  return b.packed != packed && IsPackedType(b.type) && b.data != nullptr;
}

void ConvertElements(const BufferView& from, const BufferView& to) {
  const int64_t count = from.num_elements();
  if (to.packed) {
    PackElements(from.type, count, from.data, to.data);
  } else {
    UnpackElements(from.type, count, from.data, to.data);
  }
}

}  // namespace

int64_t PackedBytes(ElementType type, int64_t count) {
  return BufferView{type, {count}, nullptr, IsPackedType(type)}.byte_size();
}

void PackElements(ElementType type, int64_t count, const void* from, void* to) {
  const int bits = ElementTypeBits(type);
  const int in_byte = 8 / bits;
  const auto mask = static_cast<unsigned>((1 << bits) - 1);
  const auto* in = static_cast<const uint8_t*>(from);
  auto* out = static_cast<uint8_t*>(to);
  for (int64_t first = 0; first < count; first += in_byte) {
    const int64_t n = std::min<int64_t>(in_byte, count - first);
    unsigned byte = 0;
    for (int64_t k = 0; k < n; ++k) byte |= (in[first + k] & mask) << (k * bits);
    *out++ = static_cast<uint8_t>(byte);
  }
}

void UnpackElements(ElementType type, int64_t count, const void* from, void* to) {
  const int bits = ElementTypeBits(type);
  const int in_byte = 8 / bits;
  const bool is_signed = IsSignedInteger(type);
  const auto* in = static_cast<const uint8_t*>(from);
  auto* out = static_cast<uint8_t*>(to);
  for (int64_t i = 0; i < count; ++i) {
    // The element in the highest bits, from where a shift to the right extends it.
    const auto high = static_cast<uint8_t>(in[i / in_byte] << (8 - bits - (i % in_byte) * bits));
    out[i] = is_signed ? static_cast<uint8_t>(static_cast<int8_t>(high) >> (8 - bits))
                       : static_cast<uint8_t>(high >> (8 - bits));
  }
}

bool ConvertedBuffers::Needed(bool packed, absl::Span<const BufferView> operands,
                              absl::Span<const BufferView> results) {
  const auto other = [packed](const BufferView& b) { return IsOther(b, packed); };
  return std::any_of(operands.begin(), operands.end(), other) ||
         std::any_of(results.begin(), results.end(), other);
}

ConvertedBuffers::ConvertedBuffers(bool packed, absl::Span<const BufferView> operands,
                                   absl::Span<const BufferView> results)
    : given_operands_(operands),
      given_results_(results),
      operands_(operands.begin(), operands.end()),
      results_(results.begin(), results.end()) {
  if (!Needed(packed, operands, results)) return;
  memory_ = std::make_shared<Memory>();
  Convert(packed, operands, &operands_);
  Convert(packed, results, &results_);
}

void ConvertedBuffers::Convert(bool packed, absl::Span<const BufferView> given,
                               std::vector<BufferView>* out) {
  const bool are_results = out == &results_;
  for (size_t k = 0; k < given.size(); ++k) {
    if (!IsOther(given[k], packed)) continue;
    BufferView& view = (*out)[k];
    view.packed = packed;
    view.data = nullptr;
    for (size_t j = 0; are_results && j < given_operands_.size(); ++j) {
      if (given_operands_[j].data == given[k].data && IsOther(given_operands_[j], packed)) {
        view.data = operands_[j].data;
      }
    }
    for (size_t j = 0; j < k && view.data == nullptr; ++j) {
      if (given[j].data == given[k].data && IsOther(given[j], packed)) view.data = (*out)[j].data;
    }
    if (view.data != nullptr) continue;
    // A byte for each element in either form: `size_bytes()` of XLA's headers counts so for packed
    // buffers, too, and a handler that fills as much should not damage other memory. The checker's
    // fences stand at the true size.
    const auto size = static_cast<size_t>(given[k].num_elements());
    memory_->push_back(std::make_unique<char[]>(size + kAlignment));
    void* at = memory_->back().get();
    size_t space = size + kAlignment;
    view.data = std::align(kAlignment, size, at, space);
    if (!are_results) ConvertElements(given[k], view);
  }
}

void ConvertedBuffers::CopyBack() const {
  for (size_t k = 0; k < results_.size(); ++k) {
    if (results_[k].data != given_results_[k].data) ConvertElements(results_[k], given_results_[k]);
  }
}

absl::Status CallConverted(
    bool packed, const HandlerContext& context, absl::Span<const BufferView> operands,
    absl::Span<const BufferView> results,
    absl::FunctionRef<absl::Status(const HandlerContext&, absl::Span<const BufferView>,
                                   absl::Span<const BufferView>)>
        call) {
  if (!ConvertedBuffers::Needed(packed, operands, results)) {
    return call(context, operands, results);
  }
  const ConvertedBuffers buffers(packed, operands, results);
  HandlerContext own = context;
  // Work that continues after its deadline may still use the copies.
  own.keep_buffers = [&context, memory = buffers.memory()]() -> std::shared_ptr<const void> {
    using Both = std::pair<std::shared_ptr<const void>, std::shared_ptr<const void>>;
    return std::make_shared<Both>(context.keep_buffers ? context.keep_buffers() : nullptr, memory);
  };
  const absl::Status status = call(own, buffers.operands(), buffers.results());
  if (status.ok()) buffers.CopyBack();
  return status;
}

}  // namespace internal
}  // namespace shardcall
