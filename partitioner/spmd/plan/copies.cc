// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/spmd/plan/copies.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/inlined_vector.h"

namespace shardcall {
inline namespace internal {
namespace {

using StateList = absl::InlinedVector<const Sharding*, 8>;

// The states that the moves of `plan` leave on the device beside the stored one. Partial values are
// not reused.
void AppendStates(const ReshardPlan& plan, const Sharding* stored, StateList* states) {
  for (const Move& m : plan.moves) {
    if (m.after == stored || !m.after->partial().empty()) continue;
    if (std::find(states->begin(), states->end(), m.after) == states->end()) {
      states->push_back(m.after);
    }
  }
}

}  // namespace

void CopyTable::Clear() {
  for (LeafId leaf : touched_) of_[leaf.value] = nullptr;
  touched_.clear();
}

const ReshardPlan& CopyTable::Plan(const Shape* shape, const Sharding* stored, const Copies* copies,
                                   const Sharding* to) {
  if (copies == nullptr) return PlanReshard(context_, shape, stored, to);
  return *CheapestReshard(context_, shape, stored, copies->states, to).plan;
}

const Copies* CopyTable::After(const Shape* shape, const Sharding* stored, const Copies* copies,
                               const Sharding* to) {
  if (stored == to) return copies;
  StateList states;
  if (copies != nullptr) states.assign(copies->states.begin(), copies->states.end());
  if (std::find(states.begin(), states.end(), to) != states.end()) return copies;
  AppendStates(Plan(shape, stored, copies, to), stored, &states);
  if (std::find(states.begin(), states.end(), to) == states.end()) states.push_back(to);
  return Intern(states);
}

const Copies* CopyTable::AfterAnnotation(const Sharding* stored, const Copies* copies,
                                         const Sharding* now) {
  StateList states;
  if (stored != now) states.push_back(stored);
  for (size_t k = 0; copies != nullptr && k < copies->states.size(); ++k) {
    if (copies->states[k] != now) states.push_back(copies->states[k]);
  }
  return Intern(states);
}

const Copies* CopyTable::AfterResult(const Shape* shape, const Sharding* produced,
                                     const Sharding* stored) {
  if (produced == stored) return nullptr;
  StateList states;
  if (produced->partial().empty()) states.push_back(produced);
  AppendStates(PlanReshard(context_, shape, produced, stored), stored, &states);
  return Intern(states);
}

const Copies* CopyTable::With(const Copies* copies, const Sharding* more) {
  StateList states;
  if (copies != nullptr) states.assign(copies->states.begin(), copies->states.end());
  if (std::find(states.begin(), states.end(), more) == states.end()) states.push_back(more);
  return Intern(states);
}

const Copies* CopyTable::Intern(absl::Span<const Sharding* const> states) {
  if (states.empty()) return nullptr;
  uint64_t hash = states.size();
  for (const Sharding* s : states) hash = MixHash(hash, reinterpret_cast<uintptr_t>(s));
  hash = FinishHash(hash);
  const Copies* found = lists_.Find(hash, [&](const Copies& c) { return c.states == states; });
  if (found != nullptr) return found;
  Copies* made = context_.arena().New<Copies>();
  made->states = context_.arena().Copy(states);
  lists_.Insert(hash, made);
  return made;
}

void UntakenReshards::Add(InstrId id, LeafId operand, const Copies* before, const Copies* after,
                          uint32_t uses, const Cost& cost) {
  Reshard made{.annotation = id, .unknown_uses = uses, .cost = cost};
  for (const Sharding* s : after->states) {
    if (before == nullptr || !absl::c_linear_search(before->states, s)) made.states.push_back(s);
  }
  of_origin_[Origin(operand)].push_back(static_cast<int>(reshards_.size()));
  reshards_.push_back(std::move(made));
}

void UntakenReshards::AddName(LeafId operand, LeafId result) {
  if (reshards_.empty()) return;
  const LeafId origin = Origin(operand);
  if (of_origin_.contains(origin)) origin_[result] = origin;
}

void UntakenReshards::Take(InstrId read, LeafId leaf, const Shape* shape, const Sharding* stored,
                           const Copies* copies, const Sharding* to) {
  if (reshards_.empty() || stored == nullptr) return;
  const auto made = of_origin_.find(Origin(leaf));
  if (made == of_origin_.end()) return;
  const Sharding* const from =
      to == nullptr || copies == nullptr
          ? stored
          : CheapestReshard(context_, shape, stored, copies->states, to).from;
  for (const int n : made->second) {
    Reshard& r = reshards_[n];
    if (absl::c_linear_search(r.states, from)) {
      r.taken = true;
    } else if (r.annotation == read && r.unknown_uses > 0) {
      --r.unknown_uses;
    }
  }
}

void UntakenReshards::TakeAll(LeafId leaf) {
  const auto made = of_origin_.find(Origin(leaf));
  if (made == of_origin_.end()) return;
  for (const int n : made->second) reshards_[n].taken = true;
}

UntakenReshards::Cost UntakenReshards::Sum() const {
  Cost sum;
  for (const Reshard& r : reshards_) {
    if (r.taken || r.unknown_uses > 0) continue;
    sum.bytes += r.cost.bytes;
    sum.seconds += r.cost.seconds;
  }
  return sum;
}

LeafId UntakenReshards::Origin(LeafId leaf) const {
  const auto it = origin_.find(leaf);
  return it == origin_.end() ? leaf : it->second;
}

}  // namespace internal
}  // namespace shardcall
