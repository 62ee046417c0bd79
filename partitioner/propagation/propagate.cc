// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "shardcall/partitioner/propagation/propagation.h"
#include "shardcall/partitioner/propagation/propagator.h"
#include "shardcall/partitioner/propagation/reasons.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {

Propagator::Propagator(const Program& program, RuleTable& rules)
    : rules_(rules), engine_(program, rules) {}

absl::StatusOr<PropagationResult> Propagator::Run(const PropagationOptions& options) {
  SHARDCALL_RETURN_IF_ERROR(rules_.status());
  return engine_.Run(options);
}

absl::StatusOr<std::vector<PropagationResult>> Propagator::RunInEachOrder(
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
  return Propagator(program, rules).Run(options);
}

std::string PropagationResult::Explain(const Program& program, LeafId leaf) const {
  return Reasons(program, *this, /*whole=*/true).Of(leaf);
}

}  // namespace shardcall
