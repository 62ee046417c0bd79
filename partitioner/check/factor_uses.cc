// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/check/factor_uses.h"

#include <algorithm>

namespace shardcall {
inline namespace internal {

bool Has(const TensorFactors& tensor, int factor) {
  return std::any_of(tensor.dims.begin(), tensor.dims.end(), [&](const FactorList& dim) {
    return std::find(dim.begin(), dim.end(), factor) != dim.end();
  });
}

bool IsMajor(const CheckedCall& call, int factor) {
  bool used = false;
  for (int t = 0; t < call.num_tensors(); ++t) {
    for (const FactorList& dim : call.rule.tensor(t).dims) {
      const auto it = std::find(dim.begin(), dim.end(), factor);
      if (it != dim.begin() && it != dim.end()) return false;
      used = used || it != dim.end();
    }
  }
  return used;
}

bool InAnOperand(const CheckedCall& call, int factor) {
  const auto& operands = call.rule.operands;
  return std::any_of(operands.begin(), operands.end(),
                     [&](const TensorFactors& t) { return Has(t, factor); });
}

bool InAResult(const CheckedCall& call, int factor) {
  const auto& results = call.rule.results;
  return std::any_of(results.begin(), results.end(),
                     [&](const TensorFactors& t) { return Has(t, factor); });
}

bool InEveryResult(const CheckedCall& call, int factor) {
  const auto& results = call.rule.results;
  return std::all_of(results.begin(), results.end(),
                     [&](const TensorFactors& t) { return Has(t, factor); });
}

CheckedCall Merged(const CheckedCall& call, const std::vector<int>& group) {
  CheckedCall merged = call;
  for (auto* side : {&merged.rule.operands, &merged.rule.results}) {
    for (TensorFactors& tensor : *side) {
      for (FactorList& dim : tensor.dims) {
        for (int& f : dim) {
          if (std::find(group.begin(), group.end(), f) != group.end()) f = group[0];
        }
      }
    }
  }
  return merged;
}

}  // namespace internal
}  // namespace shardcall
