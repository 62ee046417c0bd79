// SPDX-License-Identifier: Apache-2.0
// Gives every op its sharding rule. Propagation and the partitioner use the same rules, memoised
// by (opcode, attributes, shapes).
//
// Factor kinds, as the partitioner treats them:
//   pass-through  the op runs on shards of this factor as it is
//   reduction     likewise, and results that lack the factor are partial with
//                 its op (a gather's trivially sliced operand dim is one, with
//                 sum; a scatter's update dims are)
//   permutation   data crosses shards (slice, pad, concatenate, reverse,
//                 windows): propagation may pass it, a strategy moves the data
//   need-replication  must not be sharded
#ifndef SHARDCALL_PARTITIONER_RULES_OP_RULES_H_
#define SHARDCALL_PARTITIONER_RULES_OP_RULES_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "shardcall/partitioner/custom_call/registry.h"
#include "shardcall/partitioner/import/program.h"
#include "shardcall/sharding/base/public.h"
#include "shardcall/sharding/rule/rule.h"

namespace shardcall SHARDCALL_PUBLIC {

struct RuleOptions {
  const TargetRegistry* targets = nullptr;
  std::vector<std::string> allow_replicate = {};  // targets that may be gathered; "all"
  // Whether a reduction, or an accumulating reduce-window, by a computation that is not known may
  // be done in parts, whose results are reduced in the same way. Null: none, but for those that
  // only compare and select.
  bool (*reduces_by_parts)(const Module& module, InstrId reduce) = nullptr;
};

// How the partitioner handles an instruction.
enum class OpClass : uint8_t {
  kRule,        // a factor rule (rule() is never null)
  kStructural,  // tuples, parameters, while, call, conditional, constants, tokens
  kAnnotation,  // Program::annotation says which
  kCallbacks,   // a custom call with three callbacks, and without a body
  kManualOnly,  // partition-id and collectives: copied, legal in manual regions
  kOnShards,    // a call that each device makes with its shards as they are (RunsOnShards)
  kMissing,     // custom call without a rule: E101 if anything sharded meets it
};

// The device that an instruction is annotated to run on (a maximal sharding); -1: all. For a
// custom call one result with that annotation suffices; for another op all results must have it.
// Ops that compute nothing (a parameter, a constant, a tuple) and collectives run on all devices.
int64_t MaximalDevice(const Program& program, InstrId i);

class RuleTable {
 public:
  RuleTable(const Program& program, RuleOptions options);
  ~RuleTable();

  OpClass op_class(InstrId i);
  // The rule of an instruction, memoised; null where the class has none. The rule's operands and
  // results are flat leaves. The first error of a user's rule (E110, E111, with the instruction)
  // is returned by status().
  const ShardingRule* rule(InstrId i);
  // Small, and equal for instructions whose rule is the same; of those that have one.
  int rule_number(InstrId i);
  // The registry's entry for a custom call's target, even if something else determines its rule;
  // null if none.
  const TargetRule* target(InstrId i);
  // The call has its own rule (kRule), and its target has a registered partition callback.
  bool PartitionedByCallback(InstrId i);
  // What builds a custom call that is planned by the rule of its target; null: the call itself.
  const LocalBody* body(InstrId i);
  // Equal for instructions of one opcode with equal attributes and shapes.
  const void* kind(InstrId i);
  // Whether it is known how to partition a custom call: from the call itself, from the registry,
  // or as a built-in target.
  bool has_rule(InstrId i);
  const absl::Status& status() const;
  bool MayReplicate(absl::string_view target) const;
  const TargetShapes* shapes() const;     // shape inference of custom calls; null: none
  const TargetRegistry* targets() const;  // null: none
  int64_t hits() const;
  int64_t misses() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_RULES_OP_RULES_H_
