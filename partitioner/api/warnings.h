// SPDX-License-Identifier: Apache-2.0
// Warnings for the author of a partitioned program: the codes W2xx, as the command prints them and
// as the report and the page of `explain` list them.
#ifndef SHARDCALL_PARTITIONER_API_WARNINGS_H_
#define SHARDCALL_PARTITIONER_API_WARNINGS_H_

#include <string>
#include <vector>

#include "shardcall/partitioner/api/partition.h"
#include "shardcall/sharding/base/public.h"

namespace shardcall SHARDCALL_PUBLIC {

struct ProgramWarning {
  std::string code;  // "W201"; empty for a note that has none
  InstrId instr;     // in the propagated program; invalid if none in particular
  std::string text;
  // Too common to be printed for each program that is compiled: by `explain` and in reports only.
  bool on_request = false;

  // "W202 %sort.1 (model.py:41): sort does not run on shards".
  std::string ToString(const Module& propagated) const;
  // The fix in the table of codes; empty for a note without a code.
  absl::string_view fix() const;
};

// In this order: notes of import and of localization, W201 (full rematerialization: a value is
// gathered whole and sliced again), W208 (reshards without a search for the best plan), W202 (ops
// without a strategy), W203 (values gathered by cost: on request for work that each device then
// does; always where the rule of a call keeps dimensions apart that are sharded alike).
std::vector<ProgramWarning> Warnings(const PartitionedProgram& p);

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_API_WARNINGS_H_
