// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/check/linked_factors.h"

#include <algorithm>
#include <cstdint>

#include "shardcall/partitioner/check/factor_uses.h"

namespace shardcall {
inline namespace internal {

bool IsKeptWhole(const Factor& f) {
  return f.kind == FactorKind::kNeedReplication || f.kind == FactorKind::kPermutation;
}

void ForEachLinkedGroup(CallSizes* sizes,
                        absl::FunctionRef<void(const std::vector<int>& group)> visit) {
  const CheckedCall& call = sizes->call();
  const CallSizes::Sizes& base = sizes->base();
  std::vector<int> whole;
  for (int f = 0; f < NumFactors(call); ++f) {
    if (!IsKeptWhole(call.rule.factors[f]) || !IsMajor(call, f)) continue;
    // If the handler takes another size of it alone, it is a dimension of its own.
    if (!sizes->Takes(sizes->With(f, 2 * base[f]))) whole.push_back(f);
  }
  constexpr size_t kMost = 8;
  if (whole.size() > kMost) return;
  // Groups in order of size, to find the smallest ones whose size can change.
  std::vector<uint32_t> groups;
  for (uint32_t bits = 1; bits < 1u << whole.size(); ++bits) {
    const int n = __builtin_popcount(bits);
    if (n == 2 || n == 3) groups.push_back(bits);
  }
  std::stable_sort(groups.begin(), groups.end(), [](uint32_t a, uint32_t b) {
    return __builtin_popcount(a) < __builtin_popcount(b);
  });
  std::vector<uint32_t> found;
  for (uint32_t bits : groups) {
    if (std::any_of(found.begin(), found.end(), [&](uint32_t g) { return (g & bits) != 0; })) {
      continue;
    }
    std::vector<int> group;
    for (size_t k = 0; k < whole.size(); ++k) {
      if ((bits >> k & 1) != 0) group.push_back(whole[k]);
    }
    bool apart = true, operand = false;
    for (int t = 0; t < call.num_tensors(); ++t) {
      int here = 0;
      for (int f : group) here += Has(call.rule.tensor(t), f);
      apart = apart && here <= 1;  // an axis shards at most one dimension of a tensor
      operand = operand || (here > 0 && t < call.num_operands);
    }
    for (int f : group) apart = apart && base[f] == base[group[0]];
    if (!apart || !operand) continue;
    sizes->Link(group);
    if (sizes->Takes(sizes->With(group[0], 2 * base[group[0]]))) {
      found.push_back(bits);
      visit(group);
    }
    sizes->Unlink(group[0]);
  }
}

}  // namespace internal
}  // namespace shardcall
