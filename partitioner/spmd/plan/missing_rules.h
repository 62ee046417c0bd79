// SPDX-License-Identifier: Apache-2.0
// Collects the custom calls that have no rule but have sharded operands or results: E101, in one
// message for all.
#ifndef SHARDCALL_PARTITIONER_SPMD_PLAN_MISSING_RULES_H_
#define SHARDCALL_PARTITIONER_SPMD_PLAN_MISSING_RULES_H_

#include <map>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "shardcall/partitioner/spmd/plan/plan_table.h"

namespace shardcall {
inline namespace internal {

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
  // Whether the call `id`, which has no rule, is an error; if so, records it. It is not an error if
  // all operands and results are replicated, or if the caller allows to replicate the target.
  bool IsError(InstrId id);
  // Only the first kMostNamedCalls calls of a target have a message each. Adds the number of the
  // other calls to the last of these messages.
  void CountOthers();

 private:
  // Says which operand or result is sharded, and sets the bytes that gathering the operands sends.
  // Empty if none is sharded.
  std::string HowSharded(InstrId id, double* bytes);
  // For a value that a loop, branch or call holds replicated: the sharding that it has outside,
  // where it is passed in. Null if that is replicated too, or if an annotation asks for the
  // replication.
  const Sharding* ShardedOutside(InstrId id, int flat);
  // Whether an operand depends on a call that was reported as E101.
  bool BehindMissing(InstrId id) const;
  // A question to begin the fix with, if a target of a similar name has a rule; else empty.
  std::string Misspelt(absl::string_view target) const;
  // How many of the first dimensions are sharded that all operands and results have alike.
  int BatchDims(InstrId id) const;
  std::string Message(InstrId id, const std::string& sharded, double bytes) const;

  static constexpr int kMostNamedCalls = 8;  // of a target; further calls are counted
  struct MissingTarget {
    int calls = 0;
    size_t last_error = 0;  // index in errors_ of the last call with a message
  };

  const Program& program_;
  const Module& module_;
  RuleTable& rules_;
  PlanTable& table_;
  std::vector<std::string>& errors_;
  std::map<std::string, MissingTarget> targets_;
  std::vector<bool> behind_;  // by instruction, for BehindMissing; empty until an E101
  absl::flat_hash_map<CompId, InstrId> callers_;  // filled at first use
  bool callers_known_ = false;
};

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_SPMD_PLAN_MISSING_RULES_H_
