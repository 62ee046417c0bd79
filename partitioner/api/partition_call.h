// SPDX-License-Identifier: Apache-2.0
// Partitions a single call of a target: what its rule or its callbacks make of the shardings of
// its operands. It needs no kernel, so targets can be tested where their kernels cannot run.
// partitioner/check/rule_matchers.h has it as a matcher.
//
//   PartitionCall({.target = "my_norm",
//                  .mesh = "'data'=4,'model'=2",
//                  .operands = {"f32[8,16] [{'data'}, {'model'}]", "f32[16] [{}]"}},
//                 targets)
// gives results {"[{'data'}, {}]"} if the rule needs the columns whole.
#ifndef SHARDCALL_PARTITIONER_API_PARTITION_CALL_H_
#define SHARDCALL_PARTITIONER_API_PARTITION_CALL_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "shardcall/partitioner/api/partition.h"
#include "shardcall/sharding/base/public.h"

namespace shardcall SHARDCALL_PUBLIC {

struct SpecifiedCall {
  std::string target = "";
  std::string mesh = "";                   // axes and their sizes, as in HLO: "'x'=2,'y'=4"
  std::vector<std::string> operands = {};  // a shape, and a sharding unless replicated
  // Shapes of the results; empty: those inferred by the target's rule or shape function. A shape
  // followed by a sharding makes the users of that result require the sharding.
  std::vector<std::string> results = {};
  std::string backend_config = "";  // as in HLO text
  bool has_side_effect = false;
};

struct CallPartitioning {
  std::vector<std::string> results;             // of each flat result: "[{'x'}, {}]"
  std::unique_ptr<PartitionedProgram> program;  // for CheckContract, Explain, ..
};

// The program of the call, as HLO text.
std::string ProgramOf(const SpecifiedCall& call);
// Errors as of ParseModule (a shape or a sharding that cannot be read) and Partition.
absl::StatusOr<CallPartitioning> PartitionCall(const SpecifiedCall& call,
                                               const TargetRegistry& targets);
// The canonical text of a sharding over the call's mesh, "[{'x'}, {}]", as PartitionCall prints
// it. Errors E160 to E163.
absl::StatusOr<std::string> CanonicalSharding(const SpecifiedCall& call,
                                              const std::string& sharding);

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_API_PARTITION_CALL_H_
