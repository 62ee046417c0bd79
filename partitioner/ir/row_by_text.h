// SPDX-License-Identifier: Apache-2.0
// Fast lookup of a table's row by its text, from the length and a few characters.
#ifndef SHARDCALL_PARTITIONER_IR_ROW_BY_TEXT_H_
#define SHARDCALL_PARTITIONER_IR_ROW_BY_TEXT_H_

#include <array>
#include <cstdint>
#include <iterator>

#include "absl/strings/string_view.h"

namespace shardcall {
inline namespace internal {

// For `kRows`, an array whose elements have a `text`, all different and not empty. A hash table
// with linear probing, filled at compile time; the hash uses the length and four characters.
template <const auto& kRows>
class RowByText {
 public:
  // The row's index; -1 if there is none.
  static int Find(absl::string_view text) {
    if (text.empty()) return -1;
    for (uint32_t at = SlotOf(text); kTable[at] >= 0; at = (at + 1) % kSlots) {
      if (kRows[kTable[at]].text == text) return kTable[at];
    }
    return -1;
  }

 private:
  static constexpr int kNumRows = static_cast<int>(std::size(kRows));
  static constexpr uint32_t kSlots = 1024;
  static_assert(kNumRows < static_cast<int>(kSlots / 4));

  static constexpr uint32_t SlotOf(absl::string_view text) {
    const size_t n = text.size();
    uint32_t h = static_cast<uint32_t>(n) * 0x9E3779B1u;
    h = (h ^ static_cast<unsigned char>(text[0])) * 0x85EBCA6Bu;
    h = (h ^ static_cast<unsigned char>(text[n - 1])) * 0xC2B2AE35u;
    h = (h ^ static_cast<unsigned char>(text[n / 2])) * 0x27D4EB2Fu;
    h = (h ^ static_cast<unsigned char>(text[n / 4])) * 0x165667B1u;
    return (h ^ (h >> 15)) % kSlots;
  }
  static constexpr std::array<int16_t, kSlots> MakeTable() {
    std::array<int16_t, kSlots> slots{};
    for (int16_t& s : slots) s = -1;
    for (int i = 0; i < kNumRows; ++i) {
      uint32_t at = SlotOf(kRows[i].text);
      while (slots[at] >= 0) at = (at + 1) % kSlots;
      slots[at] = static_cast<int16_t>(i);
    }
    return slots;
  }
  static constexpr std::array<int16_t, kSlots> kTable = MakeTable();
};

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_ROW_BY_TEXT_H_
