// SPDX-License-Identifier: Apache-2.0
// One call of a target, partitioned: what its rule or its callbacks make of the
// shardings of its operands. No kernel is needed, so this is how a target is tested
// where its kernel cannot run. partitioner/check/rule_matchers.h has it as a matcher.
//
//   PartitionCall({.target = "my_norm",
//                  .mesh = "'data'=4,'model'=2",
//                  .operands = {"f32[8,16] [{'data'}, {'model'}]", "f32[16] [{}]"}},
//                 targets)
// gives results {"[{'data'}, {}]"} where the columns must be whole.
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
  std::vector<std::string> operands = {};  // a shape, and a sharding if it is not whole
  // Shapes of the results; empty: those that the target's rule or function gives. One
  // that has a sharding behind it is wanted so by who uses it.
  std::vector<std::string> results = {};
  std::string backend_config = "";  // as HLO has it
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
// A sharding over the call's mesh, "[{'x'}, {}]", as PartitionCall writes it. Errors
// E160 to E163.
absl::StatusOr<std::string> CanonicalSharding(const SpecifiedCall& call,
                                              const std::string& sharding);

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_API_PARTITION_CALL_H_
