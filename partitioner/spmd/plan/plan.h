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
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "shardcall/partitioner/import/program.h"
#include "shardcall/partitioner/propagation/propagation.h"
#include "shardcall/partitioner/rules/op_rules.h"
#include "shardcall/partitioner/spmd/plan/options.h"
#include "shardcall/sharding/base/public.h"
#include "shardcall/sharding/reshard/reshard.h"

namespace shardcall::inline internal {
struct Strategy;  // spmd/strategies/strategy.h
}  // namespace shardcall::inline internal

namespace shardcall SHARDCALL_PUBLIC {

enum class PlanKind : uint8_t {
  kDead,       // nothing is emitted
  kParameter,  // of the entry, a loop, a branch or a call
  kConstant,   // replicated; users cut it
  kAlias,      // tuple, get-tuple-element: no code of its own
  kBarrier,    // opt-barrier, after-all, add-dependency: copied, states pass
  kRule,       // by the decision's factor shardings
  kIdentity,   // an annotation: the operand, resharded
  kBoundary,   // manual region entry or exit: the operand, resharded
  kWhile,
  kConditional,
  kCall,
  kManual,     // partition-id, collectives: copied as they are
  kCallbacks,  // custom call with a partition callback
  kOneDevice,  // one device runs it, for all
  kFeed,       // infeed, outfeed: each device feeds what it holds
};

// One way to do an op, shared by all ops alike (same rule, same states). Those
// of a Plan live in the program's Context.
struct Decision {
  using States = absl::Span<const Sharding* const>;
  const ShardingRule* rule = nullptr;  // null but for ops with a rule
  const Strategy* strategy = nullptr;  // by which the op is emitted; null but for kRule
  const BaseMesh* mesh = nullptr;      // that of factor_axes; null: the program's
  absl::Span<const absl::Span<const AxisRef>> factor_axes;  // by factor
  States operands;                                          // flat leaves; null for tokens
  States produced;                                          // flat leaves of the result
  States final;                                             // after reduction and reshard
  double bytes = 0;                                         // resharding of operands and results
  double seconds = 0;                                       // by the cost model
};

struct OpPlan {
  PlanKind kind = PlanKind::kDead;
  const Decision* decision = nullptr;  // null for kDead, kAlias
};

// An op whose operands had to be gathered for want of a handler or a rule.
struct Fallback {
  InstrId instr;
  std::string reason;
};

// An op that works on more than the shards that its operands come in, or makes more
// than the shards that its results are wanted in, though nobody asked for that.
struct Gather {
  enum class Kind : uint8_t {
    kHandler,  // an operand is gathered: the op does not run on shards of that dimension
    kCost,     // an operand is gathered: the plan found it cheaper than what else there is
    kState,    // an operand is gathered: a loop, branch or call takes it in so
    kWhole,    // a result is computed in larger parts than wanted, and cut
  };
  Kind kind = Kind::kCost;
  int index = 0;  // flat leaf of the operands, or of the results
  const Sharding* from = nullptr;
  const Sharding* to = nullptr;
  double bytes = 0;  // that one device sends for it
};
absl::string_view GatherKindName(Gather::Kind kind);  // "handler", "cost", "state", "whole"

struct Plan {
  std::vector<OpPlan> ops;             // by instruction
  std::vector<const Sharding*> state;  // by canonical leaf: what is stored
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
  int64_t memo_hits = 0, memo_misses = 0;

  // The stage's dump, a line an instruction.
  std::string ToString(const Program& program) const;
};

// The device that does an op for all: the one that its sharding names, or the first for
// what each would draw for itself. In a manual region each manual coordinate has such a
// device of its own, where the named one stands along the free axes. -1: none.
int64_t RunsOnDevice(const Program& program, InstrId id);
// The axes over which such an op's result is the same.
AxisList FreeAxes(const Program& program, InstrId id);
// The computations that are partitioned (entry, loops, branches, calls), callees
// first; those of reduce, sort and the like are not among them, nor those of a loop
// that one device runs.
std::vector<CompId> PartitionedComputations(const Program& program,
                                            const std::vector<CompId>& post_order);

// Errors: E101 for every custom call without a rule that meets sharded values
// (all in one message), E104 (side effects that every device would have), E150
// (uneven shards of a reduction without pad value).
absl::StatusOr<Plan> MakePlan(const Program& program, const PropagationResult& propagation,
                              RuleTable& rules, const SpmdOptions& options);

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_SPMD_PLAN_PLAN_H_
