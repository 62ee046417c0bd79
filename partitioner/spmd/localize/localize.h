// SPDX-License-Identifier: Apache-2.0
// Executes a plan: builds the per-device module, op by op, in order. All decisions are in the
// plan.
#ifndef SHARDCALL_PARTITIONER_SPMD_LOCALIZE_LOCALIZE_H_
#define SHARDCALL_PARTITIONER_SPMD_LOCALIZE_LOCALIZE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "shardcall/partitioner/spmd/localize/collective_record.h"
#include "shardcall/partitioner/spmd/plan/plan.h"
#include "shardcall/sharding/base/public.h"

namespace shardcall SHARDCALL_PUBLIC {

struct LocalProgram {
  explicit LocalProgram(Module m) : module(std::move(m)) {}
  Module module;
  std::vector<CollectiveRecord> collectives;
  // Flat entry parameters and results: global shapes, and the state of each
  // shard (null for tokens).
  std::vector<const Shape*> parameter_shapes, output_shapes;
  std::vector<const LocalState*> parameters, outputs;
  std::vector<std::string> warnings;
};

// Errors: E120, E121 of partition callbacks; E210 where a reshard, a gather of operands, or the
// broadcast of a result that one device computed is above max_reshard_bytes.
absl::StatusOr<LocalProgram> Localize(const Program& program, const Plan& plan, RuleTable& rules,
                                      const SpmdOptions& options);

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_SPMD_LOCALIZE_LOCALIZE_H_
