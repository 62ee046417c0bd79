// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "shardcall/partitioner/propagation/engine.h"
#include "shardcall/partitioner/propagation/propagation.h"
#include "shardcall/partitioner/propagation/reasons.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {

absl::StatusOr<PropagationResult> Propagate(const Program& program, RuleTable& rules,
                                            const PropagationOptions& options) {
  PropagationEngine engine(program, rules);
  SHARDCALL_RETURN_IF_ERROR(rules.status());
  return engine.Run(options);
}

std::string PropagationResult::Explain(const Program& program, LeafId leaf) const {
  return Reasons(program, *this, /*whole=*/true).Of(leaf);
}

}  // namespace shardcall
