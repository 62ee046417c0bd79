// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "shardcall/partitioner/propagation/step.h"

namespace shardcall {
inline namespace internal {
namespace {

bool MovesOrMaps(Opcode opcode) { return HasTrait(opcode, kElementwise | kMapsElements); }

// See StepRule::alike.
absl::InlinedVector<int16_t, 4> TensorsAlike(const ShardingRule& rule) {
  if (!rule.extents.empty()) return {};
  absl::InlinedVector<int16_t, 4> out;
  for (int t = 0; t < rule.num_tensors(); ++t) {
    const absl::Span<const FactorList> dims = rule.tensor(t).dims;
    if (dims.empty()) continue;
    if (!out.empty() && dims != absl::Span<const FactorList>(rule.tensor(out[0]).dims)) return {};
    for (const FactorList& dim : dims) {
      if (dim.size() != 1) return {};
    }
    out.push_back(static_cast<int16_t>(t));
  }
  return out;
}

}  // namespace

StepRule::StepRule(const ShardingRule* rule, Opcode opcode, absl::Span<const int64_t> bytes)
    : rule(rule),
      base_level(MovesOrMaps(opcode) ? 0 : 1),
      broadcast(opcode == Opcode::kBroadcast),
      inert(true),
      bytes(bytes.begin(), bytes.end()) {
  const int n = static_cast<int>(rule->factors.size());
  dense = IsDense(*rule);
  if (dense) {
    slots.resize(static_cast<size_t>(rule->num_tensors()) * n);
  } else {
    for (int t = 0; t < rule->num_tensors(); ++t) {
      for (const FactorList& dim : rule->tensor(t).dims) {
        for (int f : dim) places.push_back({f, t});
      }
    }
    std::sort(places.begin(), places.end());
    places.erase(std::unique(places.begin(), places.end()), places.end());
    slots.resize(places.size());
  }
  absl::InlinedVector<int, 16> tensors_with(n, 0);
  absl::InlinedVector<bool, 16> in_result(n, false), same_extent(n, true);
  for (int t = 0; t < rule->num_tensors(); ++t) {
    const absl::Span<const FactorList> dims = rule->tensor(t).dims;
    for (int d = 0; d < static_cast<int>(dims.size()); ++d) {
      for (int f : dims[d]) {
        Slot& slot = slots[dense ? t * n + f : FindPlace({f, t})];
        if (slot.extent < 0) {
          ++tensors_with[f];
          slot.extent = rule->Extent(t, f);
          slot.dim = d;
        } else if (slot.dim != d) {
          slot.repeated = true;
        }
        slot.compound = slot.compound || dims[d].size() > 1;
        if (slot.extent != rule->factors[f].size) same_extent[f] = false;
        if (t >= static_cast<int>(rule->operands.size())) in_result[f] = true;
      }
    }
  }
  if (broadcast) levels = 1 << 1 | 1 << 3;
  for (int f = 0; f < n; ++f) {
    const Factor& factor = rule->factors[f];
    int level = base_level;
    if (factor.blocked)
      level = -1;
    else if (factor.kind == FactorKind::kNeedReplication)
      level = same_extent[f] && in_result[f] && opcode != Opcode::kCustomCall ? kWholeLevel : -1;
    else if (factor.kind == FactorKind::kPermutation)
      level = HasTrait(opcode, kReadsNear) ? 1 : 2;
    else if (factor.kind == FactorKind::kReduction && !in_result[f])
      level = 2;
    factor_level.push_back(static_cast<int8_t>(level));
    if (level < 0 || tensors_with[f] < 2) continue;
    inert = false;
    if (!broadcast) levels |= 1 << level;
  }
  if (!dense) return;
  alike = TensorsAlike(*rule);
  if (alike.empty() || broadcast || factor_level[0] == kWholeLevel) return;
  const auto same = [&](int8_t level) { return level == factor_level[0]; };
  if (std::all_of(factor_level.begin(), factor_level.end(), same)) alike_level = factor_level[0];
}

bool StepRule::IsDense(const ShardingRule& rule) {
  constexpr int kMostDense = 4096;
  return static_cast<int64_t>(rule.factors.size()) * rule.num_tensors() <= kMostDense;
}

StepSignature SignatureOf(const ShardingRule& rule, Opcode opcode,
                          absl::Span<const int64_t> bytes) {
  const int n = static_cast<int>(rule.factors.size()), tensors = rule.num_tensors();
  const bool custom = opcode == Opcode::kCustomCall, broadcast = opcode == Opcode::kBroadcast;
  StepSignature out = {n << 3 | MovesOrMaps(opcode) << 2 | custom << 1 | int{broadcast}, tensors,
                       static_cast<int64_t>(rule.operands.size())};
  // Of a factor without extents of its own, and in no compound dimension, the size does not count.
  IndexSet size_counts;
  for (const auto& [place, extent] : rule.extents) size_counts.Insert(place.second);
  for (int t = 0; t < tensors; ++t) {
    const absl::Span<const FactorList> dims = rule.tensor(t).dims;
    // Of the sizes of tensors only the order counts.
    int64_t smaller = 0;
    for (int64_t other : bytes) smaller += other < bytes[t];
    out.push_back(smaller << 32 | static_cast<int64_t>(dims.size()));
    for (const FactorList& dim : dims) {
      const bool compound = dim.size() > 1;
      if (dim.size() != 1) out.push_back(-1 - static_cast<int64_t>(dim.size()));
      for (int f : dim) {
        out.push_back(f);
        if (compound) size_counts.Insert(f);
      }
    }
  }
  for (int f = 0; f < n; ++f) {
    const Factor& factor = rule.factors[f];
    const bool counts = size_counts.Contains(f);
    out.push_back(counts << 4 | factor.blocked << 3 | static_cast<int>(factor.kind));
    if (counts) out.push_back(factor.size);
  }
  for (const auto& [place, extent] : rule.extents) {
    out.insert(out.end(), {place.first, place.second, extent});
  }
  return out;
}

int StepRule::FindPlace(Place place) const {
  const auto found = std::lower_bound(places.begin(), places.end(), place);
  return found == places.end() || *found != place ? -1 : static_cast<int>(found - places.begin());
}

int StepRule::Level(int factor, int from, int to) const {
  if (broadcast) return from < to ? 3 : 1;
  const int level = factor_level[factor];
  if (forward && backward && level != kWholeLevel) return level;
  const int operands = static_cast<int>(rule->operands.size());
  const bool ahead = from < operands && to >= operands, back = from >= operands && to < operands;
  if ((ahead && !forward) || (back && !backward)) return kNumLevels;
  return level != kWholeLevel || ahead ? level : kNumLevels;
}

}  // namespace internal
}  // namespace shardcall
