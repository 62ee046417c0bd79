// SPDX-License-Identifier: Apache-2.0
#ifndef SHARDCALL_PARTITIONER_PROPAGATION_PROPAGATOR_H_
#define SHARDCALL_PARTITIONER_PROPAGATION_PROPAGATOR_H_

#include <vector>

#include "absl/status/statusor.h"
#include "shardcall/partitioner/import/program.h"
#include "shardcall/partitioner/propagation/engine.h"
#include "shardcall/partitioner/propagation/propagation.h"
#include "shardcall/partitioner/rules/op_rules.h"

namespace shardcall::inline internal {

// Propagates one program several times, at less than the cost of as many calls of Propagate.
class Propagator {
 public:
  // Both must outlive it.
  Propagator(const Program& program, RuleTable& rules);
  absl::StatusOr<PropagationResult> Run(const PropagationOptions& options);
  // The different results of all orders of conflicts, that of ConflictOrder::kWait first. One, at
  // the cost of one, for a program without conflicts, which is the usual case. The order in
  // `options` is ignored.
  absl::StatusOr<std::vector<PropagationResult>> RunInEachOrder(const PropagationOptions& options);

 private:
  const RuleTable& rules_;
  PropagationEngine engine_;
};

}  // namespace shardcall::inline internal

#endif  // SHARDCALL_PARTITIONER_PROPAGATION_PROPAGATOR_H_
