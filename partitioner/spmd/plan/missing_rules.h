// SPDX-License-Identifier: Apache-2.0
// Custom calls without a rule that meet sharded values: E101, in one message for all.
#ifndef SHARDCALL_PARTITIONER_SPMD_PLAN_MISSING_RULES_H_
#define SHARDCALL_PARTITIONER_SPMD_PLAN_MISSING_RULES_H_

#include <map>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "shardcall/partitioner/spmd/plan/plan_table.h"

namespace shardcall::inline internal {

class MissingRules {
 public:
  // Messages are appended to `errors`.
  MissingRules(const Program& program, RuleTable& rules, PlanTable& table,
               std::vector<std::string>* errors)
      : program_(program),
        module_(program.module),
        rules_(rules),
        table_(table),
        errors_(*errors) {}

  // Called for every instruction, in the order in which they are planned.
  void Visit(InstrId id);
  // Whether the call `id`, which has no rule, is an error, and notes it. It is none where all
  // is whole, and where the caller allows it.
  bool IsError(InstrId id);
  // Of a target with many calls the first few have a message each; the last of these gets the
  // number of the others.
  void CountOthers();

 private:
  // How the call meets sharded values, with the bytes that gathering them sends; empty if it
  // does not.
  std::string HowSharded(InstrId id, double* bytes);
  // The sharding of what a loop or a branch takes in as a value that it holds
  // replicated, or null. A loop or branch with annotations of its own says so.
  const Sharding* ShardedOutside(InstrId id, int flat);
  // Whether a call of an E101 makes an operand, or what it is made of.
  bool BehindMissing(InstrId id) const;
  std::string Message(InstrId id, const std::string& sharded, double bytes) const;

  static constexpr int kMostNamedCalls = 8;  // of a target; others are counted
  struct MissingTarget {
    int calls = 0;
    size_t last_error = 0;  // in errors_, of a call that is named
  };

  const Program& program_;
  const Module& module_;
  RuleTable& rules_;
  PlanTable& table_;
  std::vector<std::string>& errors_;
  std::map<std::string, MissingTarget> targets_;
  std::vector<bool> behind_;                      // by instruction; empty until an E101
  absl::flat_hash_map<CompId, InstrId> callers_;  // made when first asked for
};

}  // namespace shardcall::inline internal

#endif  // SHARDCALL_PARTITIONER_SPMD_PLAN_MISSING_RULES_H_
