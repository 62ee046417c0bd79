// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/opcode.h"

#include <array>

namespace shardcall {
namespace {

// Names are found through a table of 1024 slots with linear probing, filled at
// compile time. The hash reads the length and four characters.
constexpr int kSlots = 1024;
static_assert(kNumOpcodes < kSlots / 4);

constexpr uint32_t SlotOf(absl::string_view text) {
  const size_t n = text.size();
  uint32_t h = static_cast<uint32_t>(n) * 0x9E3779B1u;
  h = (h ^ static_cast<unsigned char>(text[0])) * 0x85EBCA6Bu;
  h = (h ^ static_cast<unsigned char>(text[n - 1])) * 0xC2B2AE35u;
  h = (h ^ static_cast<unsigned char>(text[n / 2])) * 0x27D4EB2Fu;
  h = (h ^ static_cast<unsigned char>(text[n / 4])) * 0x165667B1u;
  return (h ^ (h >> 15)) % kSlots;
}

constexpr std::array<int16_t, kSlots> MakeSlots() {
  std::array<int16_t, kSlots> slots{};
  for (auto& s : slots) s = -1;
  for (int i = 0; i < kNumOpcodes; ++i) {
    uint32_t at = SlotOf(kOpcodeInfo[i].text);
    while (slots[at] >= 0) at = (at + 1) % kSlots;
    slots[at] = static_cast<int16_t>(i);
  }
  return slots;
}
constexpr std::array<int16_t, kSlots> kOpcodeSlots = MakeSlots();

template <Opcode AsyncForms::* kForm>
const AsyncForms* FindForms(Opcode opcode) {
  for (const AsyncForms& forms : kAsyncForms) {
    if (forms.*kForm == opcode) return &forms;
  }
  return nullptr;
}

}  // namespace

const AsyncForms* FormsEndedBy(Opcode opcode) { return FindForms<&AsyncForms::done>(opcode); }
const AsyncForms* FormsStartedBy(Opcode opcode) { return FindForms<&AsyncForms::start>(opcode); }
const AsyncForms* FormsOf(Opcode opcode) { return FindForms<&AsyncForms::whole>(opcode); }

bool OpcodeFromText(absl::string_view text, Opcode* opcode) {
  if (text.empty()) return false;
  for (uint32_t at = SlotOf(text); kOpcodeSlots[at] >= 0; at = (at + 1) % kSlots) {
    if (kOpcodeInfo[kOpcodeSlots[at]].text == text) {
      *opcode = static_cast<Opcode>(kOpcodeSlots[at]);
      return true;
    }
  }
  return false;
}

}  // namespace shardcall
