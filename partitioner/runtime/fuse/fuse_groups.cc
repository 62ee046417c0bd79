// SPDX-License-Identifier: Apache-2.0
// Decides which steps are fused into which groups.
#include <algorithm>

#include "shardcall/partitioner/runtime/fuse/fuse.h"
#include "shardcall/partitioner/runtime/fuse/fused_reduce.h"
#include "shardcall/partitioner/runtime/fuse/fusible.h"
#include "shardcall/partitioner/runtime/strided.h"

namespace shardcall {
inline namespace internal {
namespace {

constexpr int kMaxOpen = 64;      // groups that can still grow
constexpr int kMaxMembers = 128;  // of a group

// The loops of a strided view over `dims`. Dimensions of size 1 are dropped, and adjacent ones
// merged where they form one loop.
FusedView MakeView(absl::Span<const int64_t> dims, absl::Span<const int64_t> strides,
                   int64_t offset) {
  FusedView view;
  view.offset = offset;
  bool scalar = true;
  for (size_t k = 0; k < dims.size(); ++k) {
    if (dims[k] == 1) continue;
    scalar = scalar && strides[k] == 0;
    if (!view.loops.empty() && view.loops.back().stride == strides[k] * dims[k]) {
      view.loops.back() = {view.loops.back().size * dims[k], strides[k]};
    } else {
      view.loops.push_back({dims[k], strides[k]});
    }
  }
  if (scalar) view.loops.clear();
  return view;
}

// Decides group by group which later steps may join. A step may join a group
// that makes one of its operands unless another operand depends on the group by
// way of a step outside, which would then have to run in the middle of it.
class Grouper {
 public:
  Grouper(const ProgramComputation& comp, const StepSurvey& survey)
      : comp_(comp), survey_(survey), depends_(comp.num_slots), group_(comp.steps.size(), -1) {}

  std::vector<int> Run() {
    for (int s = 0; s < static_cast<int>(comp_.steps.size()); ++s) {
      uint64_t depends = 0;
      if (survey_.IsElementwise(s)) {
        depends = Bit(Join(s));
      } else {
        // Steps before the end of a collective must run before it.
        if (HasTrait(comp_.steps[s].opcode, kAsyncForm)) CloseAll();
        for (const OperandRef& ref : comp_.steps[s].operands) depends |= depends_[ref.slot];
        if (survey_.IsOrdered(s)) depends = ordered_ |= depends;
      }
      for (int32_t slot : comp_.steps[s].results) depends_[slot] = depends;
    }
    for (int& g : group_) {
      if (g >= 0) g = Root(g);
    }
    return std::move(group_);
  }

 private:
  struct Group {
    int parent = -1;  // the group that it was merged into
    int members = 0;
    int64_t elements = 0;
    uint64_t bits = 0;            // its own bit and those of groups merged into it
    uint64_t depends = 0;         // open groups that it depends on, directly or not
    std::vector<int32_t> inputs;  // slots made outside of it
    std::vector<int32_t> viewed;  // the inputs that are not read element by element
  };

  int Root(int g) const {
    while (groups_[g].parent >= 0) g = groups_[g].parent;
    return g;
  }
  uint64_t Bit(int g) const { return uint64_t{1} << (g - first_open_); }
  // All open groups on which the value depends.
  uint64_t Closure(uint64_t depends) const {
    uint64_t all = depends;
    for (uint64_t left = depends; left != 0; left &= left - 1) {
      const Group& g = groups_[Root(first_open_ + __builtin_ctzll(left))];
      all |= g.bits | g.depends;
    }
    return all;
  }
  // The open group that produces the value, or -1.
  int Maker(int32_t slot) const {
    const int p = survey_.producer(slot);
    if (p < 0 || group_[p] < first_open_) return -1;
    return Root(group_[p]);
  }
  void CloseAll() {
    first_open_ = static_cast<int>(groups_.size());
    std::fill(depends_.begin(), depends_.end(), 0);
    ordered_ = 0;
  }
  // Whether a slot that `other` does not produce depends on it.
  bool PathFrom(int other, absl::Span<const int32_t> slots) const {
    for (int32_t slot : slots) {
      if (Maker(slot) != other && (Closure(depends_[slot]) & groups_[other].bits) != 0) return true;
    }
    return false;
  }
  // Whether `g` produces one of the slots; inside a group its elements can only be read in order.
  bool MakesAny(int g, absl::Span<const int32_t> slots) const {
    return std::any_of(slots.begin(), slots.end(), [&](int32_t s) { return Maker(s) == g; });
  }
  bool TryMerge(int into, int from) {
    Group &a = groups_[into], &b = groups_[from];
    if (a.members + b.members >= kMaxMembers || PathFrom(into, b.inputs) ||
        PathFrom(from, a.inputs) || MakesAny(into, b.viewed) || MakesAny(from, a.viewed)) {
      return false;
    }
    b.parent = into;
    a.members += b.members;
    a.bits |= b.bits;
    a.inputs.insert(a.inputs.end(), b.inputs.begin(), b.inputs.end());
    a.viewed.insert(a.viewed.end(), b.viewed.begin(), b.viewed.end());
    AddDepends(into, b.depends);
    return true;
  }
  void AddDepends(int g, uint64_t depends) {
    groups_[g].depends |= depends;
    groups_[g].depends &= ~groups_[g].bits;
    for (int k = first_open_; k < static_cast<int>(groups_.size()); ++k) {
      if (groups_[k].parent >= 0 || (groups_[k].depends & groups_[g].bits) == 0) continue;
      groups_[k].depends |= groups_[g].bits | groups_[g].depends;
    }
  }

  int Join(int s) {
    const int64_t elements = survey_.elements(s);
    absl::InlinedVector<int32_t, 3> slots, viewed;
    absl::InlinedVector<int, 3> makers;
    for (const OperandRef& ref : comp_.steps[s].operands) {
      const ValueView value = survey_.Resolve(ref.slot);
      slots.push_back(value.slot);
      if (!value.whole) viewed.push_back(value.slot);
      const int maker = value.whole ? Maker(value.slot) : -1;
      if (maker >= 0 && groups_[maker].elements == elements &&
          groups_[maker].members < kMaxMembers) {
        makers.push_back(maker);
      }
    }
    std::sort(makers.rbegin(), makers.rend());
    int chosen = -1;
    for (int maker : makers) {
      maker = Root(maker);
      if (maker == chosen || PathFrom(maker, slots) || MakesAny(maker, viewed)) continue;
      if (chosen < 0) {
        chosen = maker;
      } else {
        TryMerge(chosen, maker);
      }
    }
    if (chosen < 0) {
      if (static_cast<int>(groups_.size()) - first_open_ == kMaxOpen) CloseAll();
      chosen = static_cast<int>(groups_.size());
      groups_.emplace_back();
      groups_.back().elements = elements;
      groups_.back().bits = Bit(chosen);
    }
    group_[s] = chosen;
    ++groups_[chosen].members;
    groups_[chosen].viewed.insert(groups_[chosen].viewed.end(), viewed.begin(), viewed.end());
    uint64_t depends = 0;
    for (int32_t slot : slots) {
      if (Maker(slot) == chosen) continue;
      depends |= Closure(depends_[slot]);
      groups_[chosen].inputs.push_back(slot);
    }
    AddDepends(chosen, depends);
    return chosen;
  }

  const ProgramComputation& comp_;
  const StepSurvey& survey_;
  std::vector<Group> groups_;
  int first_open_ = 0;
  std::vector<uint64_t> depends_;  // by slot: open groups, directly or by other steps
  uint64_t ordered_ = 0;           // dependencies of the last ordered step
  std::vector<int> group_;         // by step
};

}  // namespace

StepSurvey::StepSurvey(ProgramComputation* comp)
    : comp_(*comp),
      producer_(comp->num_slots, -1),
      elementwise_(comp->steps.size()),
      reduction_(comp->steps.size()),
      free_(comp->steps.size()),
      ordered_(comp->steps.size()),
      elements_(comp->steps.size()),
      iota_slot_(comp->steps.size(), -1) {
  for (size_t s = 0; s < comp->steps.size(); ++s) {
    const Step& step = comp->steps[s];
    for (int32_t slot : step.results) producer_[slot] = static_cast<int>(s);
    const OpData* data = step.data.get();
    const auto* reduction = dynamic_cast<const MonoidReduceData*>(data);
    ordered_[s] = HasTrait(step.opcode, kCollectiveOp | kSideEffect | kAsyncForm) ||
                  (HasTrait(step.opcode, kCallsComputation) && reduction == nullptr);
    if (step.results.size() != 1 || ordered_[s]) continue;
    elements_[s] = step.shapes[0].num_elements();
    const auto* elementwise = dynamic_cast<const ElementwiseData*>(data);
    elementwise_[s] = elementwise != nullptr && elementwise->wide.valid();
    reduction_[s] = reduction != nullptr && CanFuseReduction(*reduction) &&
                    producer_[step.operands[1].slot] < 0;
    if (const auto* iota = dynamic_cast<const IotaData*>(data)) {
      iota_slot_[s] = comp->num_slots++;
      comp->constants.emplace_back(iota_slot_[s], iota->line);
      producer_.push_back(-1);
    }
    free_[s] = iota_slot_[s] >= 0 || dynamic_cast<const ViewData*>(data) != nullptr ||
               dynamic_cast<const SameBytesData*>(data) != nullptr;
  }
}

ValueView StepSurvey::Resolve(int32_t slot) const {
  ValueView value;
  value.slot = slot;
  while (true) {
    const int p = producer_[value.slot];
    if (p < 0 || !free_[p]) return value;
    const Step& step = comp_.steps[p];
    const LeafShape& shape = step.shapes[0];
    if (dynamic_cast<const SameBytesData*>(step.data.get()) != nullptr) {
      // bf16 values are held as f32 in registers, so their bits are not available.
      if (step.opcode == Opcode::kBitcastConvert && ElementTypeBytes(shape.type) < 4) return value;
      value.slot = step.operands[0].slot;
      continue;
    }
    const auto* view = dynamic_cast<const ViewData*>(step.data.get());
    // Broadcasts read contiguous elements; transposes and the like run faster on their own, by
    // tiles.
    if (view != nullptr && step.opcode != Opcode::kBroadcast) return value;
    if (!value.whole) return value;
    const FusedView loops =
        view != nullptr ? MakeView(shape.dims, view->src_strides, view->src_offset)
                        : MakeView(shape.dims, static_cast<const IotaData&>(*step.data).strides, 0);
    value.slot = view != nullptr ? step.operands[0].slot : iota_slot_[p];
    const bool one = shape.num_elements() == 1;
    const bool flat = one || (loops.loops.size() == 1 && loops.loops[0].stride == 1);
    if (flat && loops.offset == 0) continue;
    value.whole = false;
    value.view = loops;
  }
}

std::vector<int> GroupSteps(const ProgramComputation& comp, const StepSurvey& survey) {
  std::vector<int> group = Grouper(comp, survey).Run();
  // A reduction can join the group that produces its operand: nothing in that group depends on the
  // reduction, or the grouper would have found a path around the group.
  for (int s = 0; s < static_cast<int>(group.size()); ++s) {
    if (!survey.IsReduction(s)) continue;
    const ValueView value = survey.Resolve(comp.steps[s].operands[0].slot);
    const int maker = value.whole ? survey.producer(value.slot) : -1;
    if (maker < 0 || !survey.IsElementwise(maker)) continue;
    const auto& data = static_cast<const MonoidReduceData&>(*comp.steps[s].data);
    if (survey.elements(maker) == data.outer * data.extent * data.inner) group[s] = group[maker];
  }
  return group;
}

}  // namespace internal
}  // namespace shardcall
