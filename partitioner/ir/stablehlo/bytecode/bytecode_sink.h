// SPDX-License-Identifier: Apache-2.0
// Writes the primitives of MLIR bytecode, which bytecode_cursor.h reads.
#ifndef SHARDCALL_PARTITIONER_IR_STABLEHLO_BYTECODE_SINK_H_
#define SHARDCALL_PARTITIONER_IR_STABLEHLO_BYTECODE_SINK_H_

#include <cstdint>

#include "absl/container/inlined_vector.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace shardcall {
inline namespace internal {
namespace stablehlo {

class BytecodeSink {
 public:
  BytecodeSink() = default;
  // Begins with the number of what follows.
  explicit BytecodeSink(uint64_t code) { VarInt(code); }

  // Until the next byte is written.
  absl::string_view bytes() const { return {bytes_.data(), bytes_.size()}; }

  void Byte(uint8_t byte) { bytes_.push_back(static_cast<char>(byte)); }
  void Append(absl::string_view bytes) { bytes_.insert(bytes_.end(), bytes.begin(), bytes.end()); }
  // The number of zero bits below the lowest one of the first byte is that of additional bytes.
  void VarInt(uint64_t value) {
    if (value < 0x80) return Byte(static_cast<uint8_t>((value << 1) | 1));
    int more = 1;
    while (more < 8 && value >> (7 * (more + 1)) != 0) ++more;
    if (more == 8) {
      Byte(0);
    } else {
      value = ((value << 1) | 1) << more;
    }
    const int count = more == 8 ? 8 : more + 1;
    for (int k = 0; k < count; ++k) Byte(static_cast<uint8_t>(value >> (8 * k)));
  }
  void VarIntWithFlag(uint64_t value, bool flag) { VarInt((value << 1) | (flag ? 1 : 0)); }
  // Zigzag.
  void SignedVarInt(int64_t value) {
    VarInt((static_cast<uint64_t>(value) << 1) ^ static_cast<uint64_t>(value >> 63));
  }
  void SignedList(absl::Span<const int64_t> values) {
    VarInt(values.size());
    for (int64_t v : values) SignedVarInt(v);
  }
  void Blob(absl::string_view bytes) {
    VarInt(bytes.size());
    Append(bytes);
  }
  void ZeroTerminated(absl::string_view text) {
    Append(text);
    Byte(0);
  }
  void Section(uint8_t id, absl::string_view contents) {
    Byte(id);
    Blob(contents);
  }

 private:
  absl::InlinedVector<char, 56> bytes_;  // most attributes are shorter
};

}  // namespace stablehlo
}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_STABLEHLO_BYTECODE_SINK_H_
