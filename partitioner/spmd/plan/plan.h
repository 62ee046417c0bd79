// SPDX-License-Identifier: Apache-2.0
// The plan: one walk over the program that decides, for every instruction,
// which factors are sharded over which axes, what its operands are resharded
// to, what it yields, and what that is resharded to. It emits nothing;
// localize.h executes the table.
#ifndef SHARDCALL_PARTITIONER_SPMD_PLAN_PLAN_H_
#define SHARDCALL_PARTITIONER_SPMD_PLAN_PLAN_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "shardcall/partitioner/import/program.h"
#include "shardcall/partitioner/propagation/propagation.h"
#include "shardcall/partitioner/rules/op_rules.h"
#include "shardcall/partitioner/spmd/plan/options.h"
#include "shardcall/sharding/base/public.h"
#include "shardcall/sharding/reshard/reshard.h"

namespace shardcall {
inline namespace internal {
struct Exchange;  // spmd/plan/candidate.h
struct Strategy;  // spmd/plan/strategy.h
struct PlanMemo;  // spmd/plan/plan_memo.h
}  // namespace internal
}  // namespace shardcall

namespace shardcall SHARDCALL_PUBLIC {

enum class PlanKind : uint8_t {
  kDead,       // nothing is emitted
  kParameter,  // of the entry, a loop, a branch or a call
  kConstant,   // replicated; users slice it
  kAlias,      // tuple, get-tuple-element: no code of its own
  kBarrier,    // opt-barrier, after-all, add-dependency: copied, states pass
  kRule,       // by the decision's factor shardings and strategy
  kEqual,      // the value of another op, Plan::equal, resharded without being sent
  kIdentity,   // an annotation: the operand, resharded
  kBoundary,   // manual region entry or exit: the operand, resharded
  kWhile,
  kConditional,
  kCall,
  kManual,     // partition-id, collectives, calls that take any shards: copied as they are
  kCallbacks,  // custom call with a partition callback
  kOneDevice,  // one device runs it and sends the result to the others
  kFeed,       // infeed, outfeed: each device feeds its own shard
};

// A way to partition an op that the plan did not take. The bytes and seconds are lower bounds: the
// plan stops counting when a candidate is dearer than the best one.
struct RejectedCandidate {
  const Strategy* strategy = nullptr;
  double bytes = 0;
  double seconds = 0;
};

// One way to partition an op, shared by all equal ops (same rule, same states). Decisions of a Plan
// live in the program's Context.
struct Decision {
  using States = absl::Span<const Sharding* const>;
  const ShardingRule* rule = nullptr;  // null for ops without a rule
  const Strategy* strategy = nullptr;  // emits the op; null unless kRule
  const BaseMesh* mesh = nullptr;      // that of factor_axes; null: the program's
  absl::Span<const absl::Span<const AxisRef>> factor_axes;  // by factor
  States operands;                                          // flat leaves; null for tokens
  States produced;                                          // flat leaves of the result
  States final;                                             // after reduction and reshard
  absl::Span<const Exchange> exchanges;                     // of operands, after they are resharded
  double bytes = 0;    // sent by one device: for reshards, exchanges, and by the strategy
  double seconds = 0;  // by the cost model
  // Of these or of what was charged before: for operands that nothing reads after all, and for
  // reshards that do not run each time the op does.
  double saved = 0;
  double saved_bytes = 0;  // of such reshards
  // The cheapest candidate of each other strategy.
  absl::Span<const RejectedCandidate> rejected;
};

struct OpPlan {
  PlanKind kind = PlanKind::kDead;
  const Decision* decision = nullptr;  // null for kDead, kAlias
};

// An op whose operands had to be gathered because no strategy or rule handles their sharding.
struct Fallback {
  InstrId instr;
  std::string reason;
};

// An op that works on larger parts than the shards of its operands, or computes larger parts than
// the wanted shards of its results, though no annotation asks for that.
struct Gather {
  enum class Kind : uint8_t {
    kNoStrategy,  // an operand is gathered: the op does not run on shards of that dimension
    kCost,        // an operand is gathered: this was the cheapest candidate
    kState,       // an operand is gathered: a loop, branch or call takes it in that state
    kWhole,       // a result is computed in larger parts than wanted, and sliced
  };
  Kind kind = Kind::kCost;
  int index = 0;  // flat leaf of the operands, or of the results
  const Sharding* from = nullptr;
  const Sharding* to = nullptr;
  double bytes = 0;  // sent by one device
};
absl::string_view GatherKindName(Gather::Kind kind);  // "no strategy", "cost", "state", "whole"

// By how much of the memory that a device needs in any case it may need more, each, for values
// that loops do not change and for accumulators in larger shards.
// No more than there is below the bound on memory.
inline constexpr int64_t RoomForLoops(int64_t memory, int64_t max_memory) {
  const int64_t left = max_memory > memory ? max_memory - memory : 0;
  return left < memory / 5 ? left : memory / 5;
}

struct Plan {
  std::vector<OpPlan> ops;                                     // by instruction
  std::vector<const Sharding*> state;                          // by canonical leaf: what is stored
  absl::flat_hash_map<LeafId, const Sharding*> common_copies;  // PropagationResult::common_copies
  absl::flat_hash_map<InstrId, InstrId> equal;                 // of each kEqual
  // By the op that makes such copies of its operands: what one execution sends and takes beside
  // its decision.
  absl::flat_hash_map<InstrId, std::pair<double, double>> copied;
  // Entry parameters and results, flat.
  std::vector<const Sharding*> parameters, outputs;
  std::vector<Fallback> fallbacks;
  struct OpGather {
    InstrId instr;
    Gather gather;
  };
  std::vector<OpGather> gathers;      // in the order of the program
  std::vector<std::string> warnings;  // W204
  std::vector<double> trip_count;     // by computation: executions of it
  // The same, where each branch of a conditional is as likely as the others: costs count so.
  std::vector<double> expected_runs;
  // Of one execution of the program: what one device sends, and the time by the cost model. Ops
  // without a rule, loops and branches count with what reshards their operands and results.
  double bytes = 0, seconds = 0;
  // What values that loops do not change take as a whole. Where they are resharded for the loop,
  // that is charged as if it ran before it.
  int64_t invariant_bytes = 0;
  int64_t memo_hits = 0, memo_misses = 0;

  // The dump after this stage, one line per instruction.
  std::string ToString(const Program& program) const;
};

// The device that runs an op for all: the one that its sharding names, or device 0 for an op that
// draws random numbers (IsDrawnOnce). In a manual region there is one such device for each manual
// coordinate; it has the free-axes coordinate of the named device. -1: the op does not run on one
// device.
int64_t RunsOnDevice(const Program& program, InstrId id);
// The axes that are not manual at such an op; its result is the same along them.
AxisList FreeAxes(const Program& program, InstrId id);
// The computations that are partitioned (entry, loops, branches, calls), callees first. Not
// included: computations of reduce, sort and the like, and those called by an op that one device
// runs.
std::vector<CompId> PartitionedComputations(const Program& program,
                                            const std::vector<CompId>& post_order);

// Errors: E101 for every custom call without a rule that meets sharded values
// (all in one message), E104 (side effects that every device would have), E150
// (uneven shards of a reduction without pad value). `memo` (null: none) makes further plans of the
// program, with the same rules and options, faster.
absl::StatusOr<Plan> MakePlan(const Program& program, const PropagationResult& propagation,
                              RuleTable& rules, const SpmdOptions& options,
                              PlanMemo* memo = nullptr);

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_SPMD_PLAN_PLAN_H_
