// SPDX-License-Identifier: Apache-2.0
// Instruction names of a module under construction, found by (computation,
// name). Slots hold a hash and an id; the names stay in the module.
#ifndef SHARDCALL_PARTITIONER_IR_BUILD_NAME_TABLE_H_
#define SHARDCALL_PARTITIONER_IR_BUILD_NAME_TABLE_H_

#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "shardcall/partitioner/ir/attributes_intern.h"
#include "shardcall/partitioner/ir/module.h"

namespace shardcall {
inline namespace internal {
namespace hlo_text {

class NameTable {
 public:
  explicit NameTable(const Module* module) : module_(module) {}

  void Reserve(size_t names) {
    size_t slots = 64;
    while (slots < 2 * names) slots *= 2;
    slots_.assign(slots, Slot{});
  }

  InstrId Find(CompId comp, absl::string_view name) const {
    if (slots_.empty()) return InstrId();
    const uint32_t hash = Hash(comp, name);
    const size_t mask = slots_.size() - 1;
    for (size_t i = hash & mask; slots_[i].id != UINT32_MAX; i = (i + 1) & mask) {
      if (slots_[i].hash != hash) continue;
      const Instruction& found = module_->instr(InstrId(slots_[i].id));
      if (found.computation == comp && found.name == name) return InstrId(slots_[i].id);
    }
    return InstrId();
  }

  // Requires that the module has the name already, and this table does not.
  void Insert(InstrId id) {
    if (2 * (size_ + 1) > slots_.size()) Grow();
    const Instruction& i = module_->instr(id);
    Place({Hash(i.computation, i.name), id.value});
    ++size_;
  }

 private:
  struct Slot {
    uint32_t hash = 0;
    uint32_t id = UINT32_MAX;
  };
  static uint32_t Hash(CompId comp, absl::string_view name) {
    return static_cast<uint32_t>(FinishHash(ir_internal::HashText(comp.value + 1, name)));
  }
  void Place(Slot slot) {
    const size_t mask = slots_.size() - 1;
    size_t i = slot.hash & mask;
    while (slots_[i].id != UINT32_MAX) i = (i + 1) & mask;
    slots_[i] = slot;
  }
  void Grow() {
    std::vector<Slot> old(slots_.empty() ? 64 : 2 * slots_.size());
    old.swap(slots_);
    for (const Slot& s : old) {
      if (s.id != UINT32_MAX) Place(s);
    }
  }

  const Module* module_;
  std::vector<Slot> slots_;
  size_t size_ = 0;
};

}  // namespace hlo_text
}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_BUILD_NAME_TABLE_H_
