// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/pass/nested_slices.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/types/span.h"
#include "shardcall/partitioner/ir/analysis/one_window.h"
#include "shardcall/partitioner/ir/analysis/trip_count.h"
#include "shardcall/partitioner/ir/row_by_opcode.h"

namespace shardcall {
inline namespace internal {
namespace {

// Ops that compilers make one slice, or one update, of, if they have one window.
struct SliceRow {
  Opcode opcode;
  int64_t (*index_vector_dim)(const Instruction&);  // null: starts are scalars
};
constexpr SliceRow kSlices[] = {
    {Opcode::kDynamicSlice, nullptr},
    {Opcode::kDynamicUpdateSlice, nullptr},
    {Opcode::kGather, [](const Instruction& i) { return i.as<GatherAttrs>().index_vector_dim; }},
    {Opcode::kScatter, [](const Instruction& i) { return i.as<ScatterAttrs>().index_vector_dim; }},
};

bool IsSlice(const Module& m, const Instruction& i) {
  const SliceRow* const row = RowByOpcode(kSlices, i.opcode);
  if (row == nullptr) return false;
  const auto operands = m.operands(i);
  // Run-time sizes change where a start is clamped.
  if (!m.instr(operands[0]).shape->IsArray() || m.instr(operands[0]).shape->IsDynamic()) {
    return false;
  }
  return row->index_vector_dim == nullptr ||
         HasOneWindow(*m.instr(operands[operands.size() / 2]).shape, row->index_vector_dim(i));
}

bool IsEmpty(const Instruction& i) { return i.shape->IsArray() && i.shape->num_elements() == 0; }

bool StartsInRange(const Module& m, const Instruction& i) {
  const StartLimits limits = LimitsOfStarts(m, i);
  const auto operands = m.operands(i);
  if (HasTrait(i.opcode, kMapsElements)) {  // a scalar each
    for (size_t k = 0; k < limits.most.size(); ++k) {
      if (!StartInRange(m, operands[limits.first + k], limits.most[k])) return false;
    }
    return true;
  }
  if (limits.most.empty()) return true;
  // One range for all components.
  return StartInRange(m, operands[limits.first], *absl::c_min_element(limits.most));
}

// How many operands hand their elements on, from which one; -1: all that are left.
struct HandedRow {
  Opcode opcode;
  int first, count;
};
// Ops that hand on the elements of all operands by their traits need no row. A barrier hands on
// nothing: compilers do not look through it.
constexpr HandedRow kHanded[] = {
    {Opcode::kOptBarrier, 0, 0},   {Opcode::kDynamicSlice, 0, 1},
    {Opcode::kGather, 0, 1},       {Opcode::kDynamicUpdateSlice, 0, 2},
    {Opcode::kConditional, 1, -1}, {Opcode::kBroadcast, 0, -1},
    {Opcode::kTuple, 0, -1},       {Opcode::kGetTupleElement, 0, -1},
    {Opcode::kCopy, 0, -1},        {Opcode::kCall, 0, -1},
    {Opcode::kFusion, 0, -1},      {Opcode::kWhile, 0, -1},
};

// The operands whose elements `i` hands on, at other places, in other types, or changed one by
// one.
absl::Span<const InstrId> HandedOn(const Module& m, const Instruction& i) {
  const auto operands = m.operands(i);
  if (i.opcode == Opcode::kScatter) return operands.first(operands.size() / 2);
  const HandedRow* const row = RowByOpcode(kHanded, i.opcode);
  if (row == nullptr) {
    return HasTrait(i.opcode, kElementwise | kMapsElements) ? operands
                                                            : absl::Span<const InstrId>();
  }
  return operands.subspan(row->first, row->count < 0 ? absl::Span<const InstrId>::npos
                                                     : static_cast<size_t>(row->count));
}

// The operands that a slice cuts: not what an update writes, which stays as it is.
absl::Span<const InstrId> Cut(const Module& m, const Instruction& slice) {
  return slice.opcode == Opcode::kDynamicUpdateSlice ? m.operands(slice).first(1)
                                                     : HandedOn(m, slice);
}

// Whether what its computations get and give is what a compiler may see in one piece with what is
// around: not so for a loop that runs more than once.
bool InOnePiece(const Module& m, InstrId id) {
  const Instruction& i = m.instr(id);
  if (!HasTrait(i.opcode, kControlFlow)) return i.opcode == Opcode::kFusion;
  if (i.opcode != Opcode::kWhile) return true;
  return KnownTripCount(m, id) == 1;
}

class Walk {
 public:
  explicit Walk(const Module& m)
      : m_(m),
        slice_(m.num_instructions()),
        behind_(m.num_instructions()),
        ahead_(m.num_instructions()) {
    int slices = 0;
    for (int k = 0; k < m.num_instructions(); ++k) {
      slice_[k] = IsSlice(m, m.instr(InstrId(k)));
      slices += slice_[k];
    }
    if (slices < 2) return;  // one alone is not nested
    const std::vector<CompId> callees_first = ComputationPostOrder(m);
    for (bool more = true; more;) {
      more = false;
      for (auto c = callees_first.rbegin(); c != callees_first.rend(); ++c) more |= Forwards(*c);
      for (CompId c : callees_first) more |= Backwards(c);
    }
  }

  std::vector<bool> Nested() const {
    std::vector<bool> nested(m_.num_instructions());
    for (int k = 0; k < m_.num_instructions(); ++k) {
      const Instruction& i = m_.instr(InstrId(k));
      if (!slice_[k] || IsEmpty(i)) continue;
      nested[k] = (ahead_[k] || AnyGiven(Cut(m_, i))) && !StartsInRange(m_, i);
    }
    return nested;
  }

 private:
  bool Given(InstrId id) const { return slice_[id.value] || behind_[id.value]; }
  bool AnyGiven(absl::Span<const InstrId> ids) const {
    return absl::c_any_of(ids, [&](InstrId id) { return Given(id); });
  }

  // Marks what consists of elements that a slice gave. Whether that changed what callees get.
  bool Forwards(CompId c) {
    bool changed = false;
    const auto mark = [&](InstrId id) {
      changed |= !behind_[id.value];
      behind_[id.value] = true;
    };
    for (InstrId id : m_.comp(c).instructions) {
      const Instruction& i = m_.instr(id);
      const auto called = CalledComputations(m_, i);
      const bool piece = !called.empty() && InOnePiece(m_, id);
      const bool given = AnyGiven(HandedOn(m_, i));
      if (given && (called.empty() || piece)) mark(id);
      if (!piece) continue;
      for (CompId callee : called) {
        if (Given(m_.comp(callee).root)) mark(id);
        if (!given) continue;
        for (InstrId p : m_.comp(callee).parameters) mark(p);
      }
    }
    return changed;
  }

  // Marks what a slice reads.
  bool Backwards(CompId c) {
    bool changed = false;
    const auto mark = [&](InstrId id) {
      changed |= !ahead_[id.value];
      ahead_[id.value] = true;
    };
    const auto& instructions = m_.comp(c).instructions;
    for (auto it = instructions.rbegin(); it != instructions.rend(); ++it) {
      const Instruction& i = m_.instr(*it);
      const auto called = CalledComputations(m_, i);
      bool read = called.empty() && ahead_[it->value];
      if (!called.empty() && InOnePiece(m_, *it)) {
        for (CompId callee : called) {
          if (ahead_[it->value]) mark(m_.comp(callee).root);
          for (InstrId p : m_.comp(callee).parameters) read |= ahead_[p.value];
        }
      }
      if (slice_[it->value]) {
        for (InstrId o : Cut(m_, i)) mark(o);
      }
      if (!read) continue;
      for (InstrId o : HandedOn(m_, i)) mark(o);
    }
    return changed;
  }

  const Module& m_;
  std::vector<bool> slice_, behind_, ahead_;
};

}  // namespace

std::vector<bool> NestedSlices(const Module& module) { return Walk(module).Nested(); }

}  // namespace internal
}  // namespace shardcall
