// SPDX-License-Identifier: Apache-2.0
// Shards that compute one after another: each needs what those before it have computed. Values go
// from shard to shard in a tree of collective permutes, or, if they are small, by one all-reduce.
#ifndef SHARDCALL_PARTITIONER_SPMD_STRATEGIES_PARTS_ONE_AFTER_ANOTHER_H_
#define SHARDCALL_PARTITIONER_SPMD_STRATEGIES_PARTS_ONE_AFTER_ANOTHER_H_

#include <cstdint>

#include "shardcall/partitioner/spmd/localize/op_builder.h"

namespace shardcall {
inline namespace internal {

// So many shards at most: a step is emitted for each.
inline constexpr int64_t kMostSteps = 64;

// The shards of some axes in the order of their turns, first to last or last to first.
struct Turns {
  absl::Span<const AxisRef> axes;
  int64_t size = 1;
  bool backwards = false;

  int64_t Shard(int64_t turn) const { return backwards ? size - 1 - turn : turn; }
};

// pred[]: whether this device's turn is `turn`, or comes after it.
InstrId IsTurn(Emitter& e, const Turns& turns, int64_t turn);
InstrId IsAfter(Emitter& e, const Turns& turns, int64_t turn);

// x of the shard whose turn it is, on itself and on those with later turns. Undefined on others.
InstrId ToLaterTurns(Emitter& e, InstrId x, const Turns& turns, int64_t turn);
// The sum of x over that shard and those with earlier turns, on that shard. Undefined on others. x
// is zero on those with later turns.
InstrId SumOfEarlierTurns(Emitter& e, InstrId x, const Turns& turns, int64_t turn);

// Strategy::seconds of an op that goes over its shards in each of so many turns.
double SecondsOfTurns(int64_t turns, const CostModel& cost, const Module& module,
                      const Instruction& instr, const Decision& decision);
// Charges the candidate with one of these, of a value of `bytes` bytes on each device.
void AddToLaterTurns(const OpQuery& op, const BaseMesh& mesh, double bytes, const Turns& turns,
                     int64_t turn, Candidate* c);
void AddSumOfEarlierTurns(const OpQuery& op, const BaseMesh& mesh, double bytes, const Turns& turns,
                          int64_t turn, Candidate* c);

// `x` where the scalar `which` is true, else `y`.
InstrId Where(GraphBuilder& b, InstrId which, InstrId x, InstrId y);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_SPMD_STRATEGIES_PARTS_ONE_AFTER_ANOTHER_H_
