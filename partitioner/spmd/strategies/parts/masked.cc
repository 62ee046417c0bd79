// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/spmd/strategies/parts/masked.h"

namespace shardcall {
inline namespace internal {

std::vector<int> UnevenReduced(const LocalOp& op, int t) {
  std::vector<int> dims;
  const ShardingRule* rule = op.decision.rule;
  if (rule == nullptr) return dims;
  const TensorFactors& tensor = rule->tensor(t);
  for (size_t d = 0; d < tensor.dims.size(); ++d) {
    for (int f : tensor.dims[d]) {
      const int64_t n = AxesSize(op.decision.factor_axes[f]);
      if (rule->factors[f].kind == FactorKind::kReduction && rule->Extent(t, f) % n != 0) {
        dims.push_back(static_cast<int>(d));
      }
    }
  }
  return dims;
}

}  // namespace internal
}  // namespace shardcall
