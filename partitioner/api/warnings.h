// SPDX-License-Identifier: Apache-2.0
// What a partitioned program's author should know of it: the codes W2xx, as the command
// prints them, and the report and the page of `explain` list them.
#ifndef SHARDCALL_PARTITIONER_API_WARNINGS_H_
#define SHARDCALL_PARTITIONER_API_WARNINGS_H_

#include <string>
#include <vector>

#include "shardcall/partitioner/api/partition.h"
#include "shardcall/sharding/base/public.h"

namespace shardcall SHARDCALL_PUBLIC {

struct ProgramWarning {
  std::string code;  // "W201"; empty for a note that has none
  InstrId instr;     // of the program as propagated; invalid where no one op is meant
  std::string text;

  // "W202 %sort.1 (model.py:41): sort does not run on shards".
  std::string ToString(const Module& propagated) const;
  // What the table of codes has; empty for a note without a code.
  absl::string_view fix() const;
};

// In the order of import, W201 (values gathered whole and cut again), W202 (ops without a
// way of their own), W203 (what was gathered by cost). W203 is not worth a line for each
// program that is compiled: the command prints it where it explains.
std::vector<ProgramWarning> Warnings(const PartitionedProgram& p);

// The leaf of the propagated program that a collective moves; invalid if none is recorded.
LeafId MovedLeaf(const PartitionedProgram& p, const CollectiveRecord& r);

// Why the value that the collective moves is sharded as it is; empty where nothing is known.
std::string WhySharded(const PartitionedProgram& p, const CollectiveRecord& r);

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_API_WARNINGS_H_
