// SPDX-License-Identifier: Apache-2.0
// The one table that gives every op its sharding rule; propagation and the
// partitioner read the same rules, memoised by (opcode, attributes, shapes).
//
// Kinds, as the partitioner understands them:
//   pass-through  the op runs on shards of this factor as it is
//   reduction     likewise, and results that lack the factor are partial with
//                 its op (a gather's trivially sliced operand dim is one, with
//                 sum; a scatter's update dims are)
//   permutation   data crosses shards (slice, pad, concatenate, reverse,
//                 windows): propagation may pass it, a handler moves the data
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
};

// What the partitioner does with an instruction.
enum class OpClass : uint8_t {
  kRule,        // a factor rule (rule() is never null)
  kStructural,  // tuples, parameters, while, call, conditional, constants, tokens
  kAnnotation,  // Program::annotation says which
  kCallbacks,   // a custom call with three callbacks
  kManualOnly,  // partition-id and collectives: copied, legal in manual regions
  kMissing,     // custom call without a rule: E101 if anything sharded meets it
};

// The device that an instruction is to run on by its annotation; -1: all. Of a custom
// call any result says so, of another op all of them. What computes nothing of its own
// (a parameter, a constant, a tuple) and what devices do together runs on all.
int64_t MaximalDevice(const Program& program, InstrId i);

class RuleTable {
 public:
  RuleTable(const Program& program, RuleOptions options);
  ~RuleTable();

  OpClass op_class(InstrId i);
  // The rule of an instruction, memoised; null where the class has none. The
  // rule's operands and results are flat leaves. Errors of a user's rule (E110,
  // E111, with the instruction) are kept and given by status().
  const ShardingRule* rule(InstrId i);
  // What the registry has of a custom call's target, whether or not that
  // decides; null if nothing.
  const TargetRule* target(InstrId i);
  // The call has a rule of its own, kRule, and its target a registered partition callback.
  bool PartitionedByCallback(InstrId i);
  // Equal for instructions of one opcode with equal attributes and shapes.
  const void* kind(InstrId i);
  // Whether something says how a custom call is partitioned: the call itself, the
  // registry, or what the partitioner knows of the target.
  bool has_rule(InstrId i);
  const absl::Status& status() const;
  bool MayReplicate(absl::string_view target) const;
  const TargetShapes* shapes() const;  // of custom calls; null: nothing is known
  int64_t hits() const;
  int64_t misses() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_RULES_OP_RULES_H_
