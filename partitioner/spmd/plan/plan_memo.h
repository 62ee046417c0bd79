// SPDX-License-Identifier: Apache-2.0
// What plans of one program share: the decision for all equal ops, and the lists of copies. Its
// spans live in the program's Context.
#ifndef SHARDCALL_PARTITIONER_SPMD_PLAN_PLAN_MEMO_H_
#define SHARDCALL_PARTITIONER_SPMD_PLAN_PLAN_MEMO_H_

#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "shardcall/partitioner/ir/opcode.h"
#include "shardcall/partitioner/spmd/plan/candidate.h"
#include "shardcall/partitioner/spmd/plan/copies.h"
#include "shardcall/partitioner/spmd/plan/plan.h"
#include "shardcall/partitioner/spmd/plan/program_facts.h"
#include "shardcall/partitioner/spmd/plan/sources.h"
#include "shardcall/sharding/base/intern_table.h"

namespace shardcall {
inline namespace internal {

struct PlanMemo {
  struct Entry {
    const ShardingRule* rule;
    int region;
    Opcode opcode;
    absl::Span<const Sharding* const> operands, wanted;
    absl::Span<const Copies* const> copies;  // of operands; empty: no copies
    absl::Span<const int> first_with;        // as in OpQuery
    absl::Span<const Source> sources;        // as in OpQuery
    absl::Span<const double> shares;         // as in OpQuery
    AccumulatedResult accumulated;
    absl::Span<const int64_t> places;  // as in OpQuery
    const Decision* decision;
    bool moves;                  // an operand or a result is resharded
    absl::string_view fallback;  // empty: none
    absl::Span<const Gather> gathers;
  };
  InternTable<Entry> decisions;
  std::vector<const Entry*> last;  // by instruction: what was decided for it last; null: nothing
  InternTable<Copies> copies;
  ProgramFacts facts;
};

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_SPMD_PLAN_PLAN_MEMO_H_
