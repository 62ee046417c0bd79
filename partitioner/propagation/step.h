// SPDX-License-Identifier: Apache-2.0
// One propagation step: what a rule proposes for the shardings of its tensors, apart from any
// graph. The result depends on the rule and the shardings alone, so it is memoised.
//
// Stages. A proposal belongs to a stage, (level, aggressiveness). Levels:
//   0  pass-through factors of ops that compute per element or move data
//   1  pass-through factors of all other ops; a broadcast's result to its operand; permutation
//      factors of ops that read about the same place, as slices, pads and windows do
//   2  reduction factors among operands; other permutation factors
//   3  a broadcast's operand to its result (small values must not determine large ones)
//   4  factors that the op needs whole, from operands to results: the result is cut, for nothing,
//      so that what follows is computed on shards. Not those of a custom call, whose author says
//      what must be whole.
// In the basic half of a level a factor takes the longest major axes on which
// all tensors agree, and two factors that want one axis in a tensor get none,
// unless the order of conflicts (conflict_order.h) decides at once: so it does from level 1 on.
// In the aggressive half each tensor takes what it can, in that order.
//
// Example, level 1, basic: i k, k j -> i j with lhs [{"a"}, {}], rhs [{}, {"b"}]
// proposes result [{"a"}, {"b"}].
#ifndef SHARDCALL_PARTITIONER_PROPAGATION_STEP_H_
#define SHARDCALL_PARTITIONER_PROPAGATION_STEP_H_

#include <compare>
#include <vector>

#include "absl/types/span.h"
#include "shardcall/partitioner/ir/opcode.h"
#include "shardcall/partitioner/propagation/conflict_order.h"
#include "shardcall/sharding/base/index_set.h"
#include "shardcall/sharding/rule/rule.h"
#include "shardcall/sharding/sharding.h"

namespace shardcall {
inline namespace internal {

// Restrictions of a leaf; interned.
struct Limits {
  IndexSet closed = {};  // dimensions that take no further axis
  bool cheap = false;    // a constant expression: not propagated to its users
  bool fixed = false;    // on one device: takes and gives nothing
  AxisList reserved;     // axes that the leaf must not take
  friend bool operator==(const Limits&, const Limits&) = default;
  bool IsClosed(int d) const { return fixed || closed.Contains(d); }
};

struct StepTensor {
  const Sharding* sharding = nullptr;
  const Limits* limits = nullptr;
};

inline constexpr int kNumLevels = 5;
inline constexpr int kNumStages = 2 * kNumLevels;
inline constexpr int kWholeLevel = 4;  // of factors that the op needs whole

// A rule prepared for propagation steps.
struct StepRule {
  StepRule(const ShardingRule* rule, Opcode opcode, absl::Span<const int64_t> bytes);
  // A dense rule has a place for each factor in each tensor (see Slot).
  static bool IsDense(const ShardingRule& rule);
  const ShardingRule* rule;
  int base_level;
  bool broadcast;
  // No factor that could propagate occurs in two tensors.
  bool inert;
  // The tensors that have dimensions, if all of these have the same ones, each a factor of its own
  // and as long: where their shardings are the same, no step proposes anything. Else empty.
  absl::InlinedVector<int16_t, 4> alike;
  int8_t alike_level = -1;  // of all factors, if tensors are alike and it is the same for all
  bool forward = true, backward = true;   // from operands to results; from results to operands
  uint32_t levels = 0;                    // a bit per level at which some factor propagates
  absl::InlinedVector<int64_t, 4> bytes;  // by tensor
  absl::InlinedVector<int8_t, 8> factor_level;  // -1: never
  // A slot is a factor of a tensor. Ordinary rules are dense: slot t * factors + f is factor f of
  // tensor t, present or not. A call may have thousands of tensors and of factors, with only a few
  // factors per tensor. Then only the factors that are present have a slot, ordered by factor and
  // then by tensor.
  struct Place {
    int factor, tensor;
    friend auto operator<=>(const Place&, const Place&) = default;
  };
  struct Slot {
    int64_t extent = -1;    // -1: factor absent
    int dim = -1;           // the first dimension that has the factor
    bool compound = false;  // some dimension has other factors beside it
    bool repeated = false;  // several dimensions have it
  };
  bool dense;
  std::vector<Place> places;  // by slot; empty if dense
  absl::InlinedVector<Slot, 12> slots;
  int FindPlace(Place place) const;  // its slot; -1: factor absent. If not dense.
  // Level at which `factor` propagates from one tensor to another.
  int Level(int factor, int from, int to) const;
};

// Of rules with equal signatures all steps are the same. Sizes count only where a step compares
// them, as in compound dimensions: f32[8] + f32[8] is as bf16[4] * bf16[4].
using StepSignature = absl::InlinedVector<int64_t, 40>;
StepSignature SignatureOf(const ShardingRule& rule, Opcode opcode, absl::Span<const int64_t> bytes);

// Proposes `axes` for dimension `dim` of `tensor`; they extend its current axes. They are those of
// dimension `from_dim` of tensor `from`; -1: not of a single one.
struct Proposal {
  int tensor, dim, from, from_dim;
  FactorKind kind;
  AxisList axes;
};

using Proposals = absl::InlinedVector<Proposal, 4>;

// Two factors that want one axis in a tensor, each for a dimension of it, as they have it in a
// dimension of another tensor.
struct Contest {
  struct Side {
    int dim = -1;
    int from = -1, from_dim = -1;  // tensor, dimension
  };
  int tensor = -1;
  AxisRef axis;
  Side sides[2];
};

struct StepResult {
  const BaseMesh* mesh = nullptr;
  int stage = kNumStages;  // first stage with proposals; kNumStages: none at all
  bool contested = false;
  Contest contest;  // the first one, if contested
  Proposals proposals;
};

StepResult PropagateThrough(const StepRule& rule, absl::Span<const StepTensor> tensors,
                            ConflictOrder order = ConflictOrder::kWait);

// The same for the most frequent steps, whose tensors are alike, and some have one sharding, the
// others no axes. False: not one of these, `result` is as it was.
bool PropagateAlike(const StepRule& rule, absl::Span<const StepTensor> tensors, StepResult* result);

// `have` extended along `axes`, up to the first axis that is in `used` or `reserved`; `have`
// itself if `axes` does not extend it.
AxisList ExtendFree(const BaseMesh& mesh, absl::Span<const AxisRef> have,
                    absl::Span<const AxisRef> axes, absl::Span<const AxisRef> used,
                    absl::Span<const AxisRef> reserved);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_PROPAGATION_STEP_H_
