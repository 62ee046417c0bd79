// SPDX-License-Identifier: Apache-2.0
// Reads the primitives of MLIR bytecode from a span of bytes.
#ifndef SHARDCALL_PARTITIONER_IR_STABLEHLO_BYTECODE_CURSOR_H_
#define SHARDCALL_PARTITIONER_IR_STABLEHLO_BYTECODE_CURSOR_H_

#include <bit>
#include <cstdint>
#include <cstring>

#include "absl/strings/string_view.h"

namespace shardcall {
inline namespace internal {
namespace stablehlo {

// Reading beyond the end gives zeros and clears ok().
class BytecodeCursor {
 public:
  explicit BytecodeCursor(absl::string_view bytes) : rest_(bytes), size_(bytes.size()) {}

  bool ok() const { return ok_; }
  void Fail() { ok_ = false; }
  bool empty() const { return rest_.empty(); }
  size_t position() const { return size_ - rest_.size(); }

  absl::string_view Take(uint64_t count) {
    if (count > rest_.size()) {
      ok_ = false;
      rest_ = {};
      return {};
    }
    const absl::string_view taken = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return taken;
  }
  uint8_t Byte() {
    const absl::string_view b = Take(1);
    return b.empty() ? 0 : static_cast<uint8_t>(b[0]);
  }
  // The number of zero bits below the lowest one of the first byte is that of additional bytes.
  uint64_t VarInt() {
    const uint8_t first = Byte();
    if (first & 1) return first >> 1;
    const int more = first == 0 ? 8 : std::countr_zero(first);
    const absl::string_view bytes = Take(static_cast<uint64_t>(more));
    if (!ok_) return 0;
    uint64_t value = 0;
    std::memcpy(&value, bytes.data(), bytes.size());
    return first == 0 ? value : (value << (8 - more - 1)) | (first >> (more + 1));
  }
  // Zigzag.
  int64_t SignedVarInt() {
    const uint64_t v = VarInt();
    return static_cast<int64_t>(v >> 1) ^ -static_cast<int64_t>(v & 1);
  }
  // A count of elements that have at least one byte each.
  size_t Count() {
    const uint64_t n = VarInt();
    if (n > rest_.size()) ok_ = false;
    return ok_ ? n : 0;
  }
  absl::string_view ZeroTerminated() {
    const size_t end = rest_.find('\0');
    if (end == absl::string_view::npos) {
      ok_ = false;
      return {};
    }
    const absl::string_view text = Take(end);
    Take(1);
    return text;
  }

 private:
  absl::string_view rest_;
  size_t size_;
  bool ok_ = true;
};

}  // namespace stablehlo
}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_STABLEHLO_BYTECODE_CURSOR_H_
