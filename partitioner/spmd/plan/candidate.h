// SPDX-License-Identifier: Apache-2.0
// Candidates: the ways to partition an op that the plan compares. A candidate lists everything that
// is sent: the reshards of operands and results, the halo exchanges of operands, and the other
// collectives that its strategy emits. It is charged for just these; localize runs the exchanges.
#ifndef SHARDCALL_PARTITIONER_SPMD_PLAN_CANDIDATE_H_
#define SHARDCALL_PARTITIONER_SPMD_PLAN_CANDIDATE_H_

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "shardcall/partitioner/ir/module.h"
#include "shardcall/partitioner/spmd/plan/copies.h"
#include "shardcall/partitioner/spmd/plan/plan.h"
#include "shardcall/partitioner/spmd/plan/sources.h"
#include "shardcall/sharding/exchange/ranges.h"
#include "shardcall/sharding/reshard/links.h"
#include "shardcall/sharding/rule/rule.h"

namespace shardcall {
inline namespace internal {

// Of an op whose result a loop accumulates (waiting_sums.h): if the result is a sum over devices,
// that is reduced once, after the loop.
struct AccumulatedResult {
  double share = 1;        // of the executions of the op those in which it is reduced
  int64_t held_bytes = 0;  // what a device holds of the accumulator, if it does not wait
  int64_t more_bytes = 0;  // what it may hold beside that
  // Whether the result may wait in the state `made`.
  bool MayWait(const Shape* shape, const Sharding& made) const;

  friend bool operator==(const AccumulatedResult& a, const AccumulatedResult& b) = default;
};

// What a body needs to build its call while it is planned.
struct PlanInputs {
  const Program& program;
  RuleTable& rules;
  const SpmdOptions& options;
};

// An op with its rule, and the flat leaves of its operands and results. What is decided for it is
// decided for all ops with the same rule and states, so nothing else of them may be looked at, such
// as the values of operands.
struct OpQuery {
  const Module& module;
  InstrId id;
  const ShardingRule* rule;
  absl::Span<const Shape* const> shapes;       // of operands
  absl::Span<const Sharding* const> operands;  // as stored
  absl::Span<const Copies* const> copies;      // of operands; empty: no copies
  absl::Span<const Sharding* const> wanted;    // results
  // By operand: the first operand that is the same value, which is resharded once for both. Empty
  // if all differ.
  absl::Span<const int> first_with;
  absl::Span<const Source> sources = {};  // by operand; empty: none has one
  // By operand: of the executions of the op those in which its reshard runs (invariants.h). For
  // operands beyond its end, all.
  absl::Span<const double> shares = {};
  AccumulatedResult accumulated = {};
  // PlanTable::PlacesOf the op.
  absl::Span<const int64_t> places = {};
  const PlanInputs* body = nullptr;  // for a custom call whose target has a body

  const Instruction& instr() const { return module.instr(id); }
  const Shape* result(int k) const { return instr().shape->leaf(k); }
  // Of tensor t: operands as stored, then results as wanted.
  const Sharding* state(int t) const {
    const int n = static_cast<int>(operands.size());
    return t < n ? operands[t] : wanted[t - n];
  }
};

// A halo exchange, which brings a range of dimension `dim` of an operand onto each device, over the
// axes by which that dimension is sharded. Exchanges of one operand run in order, each on what the
// one before has made.
struct Exchange {
  int operand = 0, dim = 0;
  ShardRanges ranges;
};

using Exchanges = absl::InlinedVector<Exchange, 2>;
// Puts the exchanges of each operand, which stand together, into the order that sends least, if
// that is much less.
void PutInOrder(Exchanges* exchanges);

struct Candidate {
  Decision d;  // its spans refer to the members below
  absl::InlinedVector<const Sharding*, 12> operands, produced;
  absl::InlinedVector<AxisList, 8> own_axes;
  absl::InlinedVector<absl::Span<const AxisRef>, 8> axes;  // by factor: own_axes
  Exchanges exchanges;
  absl::InlinedVector<Traffic, 2> emitted;  // each collective that the strategy emits

  // Adds a collective that the strategy emits over some axes of `mesh`.
  void AddEmitted(Context& context, double bytes, const BaseMesh& mesh,
                  absl::Span<const AxisRef> axes, Collective c = Collective::kAllGather);
  // Adds the reshard of a value of the strategy's own.
  void AddReshard(Context& context, const Shape* global, const Sharding* from, const Sharding* to);
};

// The dimension of tensor t (operands, then results) that consists of factor f alone, or -1.
int DimOfFactor(const ShardingRule& rule, int t, int f);
// The most major factor of dimension d of tensor t, which has one.
inline const Factor& FactorOfDim(const ShardingRule& rule, int t, int d) {
  return rule.factors[rule.tensor(t).dims[d][0]];
}

// Changes `rule`, a copy of the op's, so that dimension d of operand t, which shares a factor of
// its own with dimension `out_dim` of result `out`, is summed over: its factor becomes a reduction
// that the result lacks. The result's dimension gets a factor that stays whole. False, without a
// change, if the operand's type has no sums or the factor must be whole.
bool SumOverDim(const OpQuery& op, int t, int d, int out, int out_dim, ShardingRule* rule);

// What one device sends in the exchanges of operands with these global shapes, held as `states`.
Traffic ExchangeTraffic(Context& context, absl::Span<const Exchange> exchanges,
                        absl::Span<const Shape* const> shapes,
                        absl::Span<const Sharding* const> states);

// Adds the collectives of an exchange that the strategy emits itself along dimension `dim` of a
// shard in `state`, with `row_bits` for each element along it.
void AddEmittedExchange(Context& context, const ShardRanges& ranges, double row_bits,
                        const Sharding& state, int dim, Candidate* candidate);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_SPMD_PLAN_CANDIDATE_H_
