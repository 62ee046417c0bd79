// SPDX-License-Identifier: Apache-2.0
// Steps of tensors that are alike (StepRule::alike), one sharding among them. There each tensor
// without axes takes this sharding, but for its closed dimensions: no two factors want an axis, and
// no factor has two shardings, so that all is proposed in the basic half of the rule's only level.
#include "shardcall/partitioner/propagation/step.h"

namespace shardcall {
inline namespace internal {

bool PropagateAlike(const StepRule& rule, absl::Span<const StepTensor> tensors,
                    StepResult* result) {
  if (rule.alike_level < 0 || !rule.forward || !rule.backward) return false;
  const Sharding* shared = nullptr;
  int from = -1;  // the largest tensor that gives it
  const int operands = static_cast<int>(rule.rule->operands.size());
  for (int t : rule.alike) {
    const auto& [sharding, limits] = tensors[t];
    if (!sharding->HasShardedDim()) {
      if (!limits->fixed && !(sharding->used().empty() && limits->reserved.empty())) return false;
      continue;
    }
    if (limits->fixed || (shared != nullptr && sharding != shared)) return false;
    shared = sharding;
    const bool gives = !limits->cheap || t >= operands;
    if (gives && (from < 0 || rule.bytes[t] > rule.bytes[from])) from = t;
  }
  if (shared == nullptr) return false;
  result->mesh = shared->mesh();
  if (from < 0) return true;
  for (int t : rule.alike) {
    const auto& [sharding, limits] = tensors[t];
    if (sharding == shared) continue;
    for (int d = 0; d < shared->rank(); ++d) {
      const absl::Span<const AxisRef> axes = shared->dim(d);
      if (axes.empty() || limits->IsClosed(d)) continue;
      const FactorKind kind = rule.rule->factors[rule.rule->tensor(t).dims[d][0]].kind;
      result->proposals.push_back({t, d, from, d, kind, AxisList(axes.begin(), axes.end())});
    }
  }
  if (!result->proposals.empty()) result->stage = 2 * rule.alike_level;
  return true;
}

}  // namespace internal
}  // namespace shardcall
