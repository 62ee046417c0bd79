// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/simplify/carried_reverses.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "shardcall/partitioner/ir/simplify/mirrored_ops.h"

namespace shardcall {
inline namespace internal {
namespace {

class Carrier {
 public:
  explicit Carrier(const Module& m)
      : m_(m),
        reversed_(m.num_instructions(), 0),
        carries_(m.num_instructions(), false),
        group_(m.num_instructions()) {
    std::iota(group_.begin(), group_.end(), 0);
  }

  std::optional<Rewritten> Run() {
    for (int c = 0; c < m_.num_computations(); ++c) {
      for (InstrId id : m_.comp(CompId(c)).instructions) Look(id);
    }
    if (!absl::c_linear_search(carries_, true)) return std::nullopt;
    if (!KeepWhatSaves()) return std::nullopt;
    return Rewrite();
  }

 private:
  // Finds in which dimensions the value of an instruction is the reverse of what it is if reverses
  // are carried.
  void Look(InstrId id) {
    const Instruction& i = m_.instr(id);
    if (!i.shape->IsArray() || i.shape->IsDynamic() || i.shape->rank() >= kMostReversedRank) return;
    const absl::Span<const InstrId> operands = m_.operands(i);
    if (i.opcode == Opcode::kReverse) {
      Join(id, operands);
      if (!IsAnnotated(i)) reversed_[id.value] = AfterReverse(i);
      return;
    }
    const MirroredOp* const row = MirroredOpOf(i.opcode);
    if (row == nullptr) return;
    ReversedDims of = 0;
    for (InstrId o : operands) of = of == 0 ? reversed_[o.value] : of;
    if (of == 0) return;
    for (InstrId o : operands) {
      if (reversed_[o.value] != of && !(reversed_[o.value] == 0 && IsSymmetric(o, of, 4))) return;
    }
    const std::optional<ReversedDims> result = row->result(m_, i, of);
    if (!result.has_value() || (IsAnnotated(i) && (*result != 0 || i.extra >= 0))) return;
    Join(id, operands);
    reversed_[id.value] = *result;
  }

  // Then the value is for others as written.
  static bool IsAnnotated(const Instruction& i) {
    return i.sharding != nullptr || i.frontend != nullptr || i.extra >= 0;
  }
  ReversedDims AfterReverse(const Instruction& i) const {
    ReversedDims mask = reversed_[m_.operands(i)[0].value];
    for (int64_t d : i.as<DimensionsAttrs>().dimensions) mask ^= ReversedDims{1} << d;
    return mask;
  }

  void Join(InstrId id, absl::Span<const InstrId> operands) {
    carries_[id.value] = true;
    for (InstrId o : operands) {
      if (reversed_[o.value] != 0) group_[Group(o)] = Group(id);
    }
  }
  uint32_t Group(InstrId id) {
    uint32_t g = id.value;
    while (group_[g] != g) g = group_[g] = group_[group_[g]];
    return g;
  }

  // Whether the value is its own reverse in these dimensions.
  bool IsSymmetric(InstrId id, ReversedDims mask, int depth) const {
    const Instruction& i = m_.instr(id);
    if (!i.shape->IsArray()) return false;
    if (i.shape->rank() == 0) return true;
    if (depth == 0) return false;
    if (i.opcode == Opcode::kBroadcast) {
      const auto& dimensions = i.as<DimensionsAttrs>().dimensions;
      return absl::c_none_of(dimensions, [&](int64_t d) { return IsReversed(mask, d); });
    }
    if (i.opcode == Opcode::kIota) return !IsReversed(mask, i.as<IotaAttrs>().dimension);
    return HasTrait(i.opcode, kElementwise) && absl::c_all_of(m_.operands(i), [&](InstrId o) {
             return reversed_[o.value] == 0 && IsSymmetric(o, mask, depth - 1);
           });
  }

  // Marks the values that ops which do not carry read. False if no group reverses less so.
  bool KeepWhatSaves() {
    wanted_.assign(m_.num_instructions(), false);
    for (int k = 0; k < m_.num_instructions(); ++k) {
      if (carries_[k]) continue;
      for (InstrId o : m_.operands(InstrId(k))) wanted_[o.value] = true;
    }
    for (int c = 0; c < m_.num_computations(); ++c) {
      if (m_.comp(CompId(c)).root.valid()) wanted_[m_.comp(CompId(c)).root.value] = true;
    }
    std::vector<int64_t> saved(m_.num_instructions(), 0);  // bytes, by group
    for (int k = 0; k < m_.num_instructions(); ++k) {
      if (!carries_[k]) continue;
      const Instruction& i = m_.instr(InstrId(k));
      int64_t& of_group = saved[Group(InstrId(k))];
      if (i.opcode == Opcode::kReverse) of_group += i.shape->byte_size();
      const bool stays = i.opcode == Opcode::kReverse && IsAnnotated(i) && AfterReverse(i) != 0;
      if (stays || (reversed_[k] != 0 && wanted_[k])) of_group -= i.shape->byte_size();
    }
    bool any = false;
    for (int k = 0; k < m_.num_instructions(); ++k) {
      carries_[k] = carries_[k] && saved[Group(InstrId(k))] > 0;
      any = any || carries_[k];
    }
    return any;
  }

  Rewritten Rewrite() const {
    std::vector<InstrId> bases(m_.num_instructions());  // of values that are reversed
    return RewriteOps(m_, [&](InstrId id, GraphBuilder& b, ModuleCloner& cloner) {
      if (carries_[id.value]) Carry(id, &bases, b, cloner);
      return bool{carries_[id.value]};
    });
  }

  void Carry(InstrId id, std::vector<InstrId>* bases, GraphBuilder& b, ModuleCloner& cloner) const {
    const Instruction& i = m_.instr(id);
    absl::InlinedVector<InstrId, 8> operands;
    ReversedDims of = 0;
    for (InstrId o : m_.operands(i)) {
      const bool carried = carries_[o.value] && reversed_[o.value] != 0;
      if (carried) of = reversed_[o.value];
      operands.push_back(carried ? (*bases)[o.value] : cloner.now(o));
    }
    b.set_metadata(i.metadata);
    InstrId base = operands[0];
    if (i.opcode == Opcode::kReverse && IsAnnotated(i)) {
      const ReversedDims rest = AfterReverse(i);
      cloner.Replace(id, rest == 0 ? b.Copy(base) : b.Reverse(base, DimensionsOf(rest)));
      return;
    }
    if (i.opcode != Opcode::kReverse) {
      Instruction copy = cloner.CopyOf(id);
      const auto mirror = MirroredOpOf(i.opcode)->mirror;
      if (mirror != nullptr) mirror(b.module(), of, &copy, &operands);
      base = cloner.Add(id, copy, operands, b.computation());
    }
    (*bases)[id.value] = base;
    // Where no op reads it reversed, what is noted beside the module follows the base.
    const bool reverse = reversed_[id.value] != 0 && wanted_[id.value];
    cloner.Set(id, reverse ? b.Reverse(base, DimensionsOf(reversed_[id.value])) : base);
  }

  const Module& m_;
  std::vector<ReversedDims> reversed_;  // by instruction
  std::vector<bool> carries_;           // whether it is part of a group
  std::vector<uint32_t> group_;         // a union-find
  std::vector<bool> wanted_;
};

bool HasReverse(const Module& m) {
  for (int k = 0; k < m.num_instructions(); ++k) {
    if (m.instr(InstrId(k)).opcode == Opcode::kReverse) return true;
  }
  return false;
}

}  // namespace

std::optional<Rewritten> CarryReverses(const Module& module) {
  if (!HasReverse(module)) return std::nullopt;
  return Carrier(module).Run();
}

}  // namespace internal
}  // namespace shardcall
