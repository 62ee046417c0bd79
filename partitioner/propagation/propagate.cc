// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "shardcall/partitioner/propagation/engine.h"
#include "shardcall/partitioner/propagation/propagation.h"
#include "shardcall/partitioner/propagation/reasons.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {

absl::StatusOr<std::vector<PropagationResult>> PropagationEngine::RunInEachOrder(
    const PropagationOptions& options) {
  std::vector<PropagationResult> results;
  PropagationOptions of_order = options;
  for (ConflictOrder order : kConflictOrders) {
    of_order.conflicts = order;
    SHARDCALL_ASSIGN_OR_RETURN(PropagationResult result, Run(of_order));
    const bool contested = !result.met.empty();
    const bool known = absl::c_any_of(results, [&](const PropagationResult& r) {
      return r.sharding == result.sharding && r.outputs == result.outputs;
    });
    if (!known) results.push_back(std::move(result));
    if (!contested) break;
  }
  return results;
}

}  // namespace internal

absl::StatusOr<PropagationResult> Propagate(const Program& program, RuleTable& rules,
                                            const PropagationOptions& options) {
  return PropagationEngine(program, rules).Run(options);
}

std::string PropagationResult::Explain(const Program& program, LeafId leaf) const {
  return Reasons(program, *this, /*whole=*/true).Of(leaf);
}

}  // namespace shardcall
