// SPDX-License-Identifier: Apache-2.0
#include "shardcall/sharding/rule/factor_assignment.h"

#include <algorithm>

namespace shardcall {

FactorAssignment::FactorAssignment(const ShardingRule& rule, const BaseMesh* mesh,
                                   absl::Span<const AxisRef> manual, const IndexSet& allowed)
    : rule_(rule), mesh_(mesh), manual_(manual), allowed_(allowed), axes_(rule.factors.size()) {}

bool FactorAssignment::Conflicts(AxisRef a, int except) const {
  for (AxisRef m : manual_) {
    if (Overlaps(a, m)) return true;
  }
  for (int f : assigned_) {
    if (f == except) continue;
    for (AxisRef b : axes_[f]) {
      if (Overlaps(a, b)) return true;
    }
  }
  return false;
}

AxisList FactorAssignment::FreePrefix(absl::Span<const AxisRef> axes, int factor) const {
  AxisList out;
  for (AxisRef a : axes) {
    if (Conflicts(a, factor)) break;
    out.push_back(a);
  }
  return out;
}

void FactorAssignment::Take(int f, absl::Span<const AxisRef> axes) {
  AxisList free = FreePrefix(axes, f);
  if (free.empty()) return;
  if (!axes_[f].empty() && !IsPrefix(*mesh_, axes_[f], free)) return;
  if (axes_[f].empty()) assigned_.push_back(f);
  axes_[f] = std::move(free);
}

void FactorAssignment::Project(int t, const Sharding& s) {
  if (s.mesh() != mesh_ || s.is_maximal()) return;
  ProjectOntoFactors(
      rule_.tensor(t), s, [&](int f) { return rule_.Extent(t, f); },
      [&](int f, absl::Span<const AxisRef> axes) {
        if (allowed_.Contains(f) && absl::MakeConstSpan(axes_[f]) != axes) Take(f, axes);
      });
}

void FactorAssignment::Extend(int f, absl::Span<const AxisRef> axes) {
  AxisList all = axes_[f];
  for (AxisRef a : axes) {
    if (!Conflicts(a, f) && !Overlaps({a}, axes_[f])) all.push_back(a);
  }
  if (all.size() > axes_[f].size()) Take(f, all);
}

void FactorAssignment::Normalize() {
  if (assigned_.empty()) return;
  // A value can be partial by one reduction op only.
  const Factor* first = nullptr;
  for (int f : assigned_) {
    const Factor& factor = rule_.factors[f];
    if (axes_[f].empty() || factor.kind != FactorKind::kReduction) continue;
    if (first == nullptr) first = &factor;
    if (factor.reduction != first->reduction) axes_[f].clear();
  }
  for (bool changed = true; changed;) {
    changed = false;
    for (int t = 0; t < rule_.num_tensors(); ++t) {
      for (const FactorList& factors : rule_.tensor(t).dims) {
        if (factors.size() < 2) continue;
        bool whole = true;  // every more major factor has extent 1 per shard
        for (int f : factors) {
          const int64_t extent = rule_.Extent(t, f);
          if (!axes_[f].empty()) {
            AxisList fit = whole ? PrefixOfSize(*mesh_, axes_[f], extent) : AxisList();
            if (fit != axes_[f]) {
              axes_[f] = fit;
              changed = true;
            }
          }
          whole = whole && AxesSize(axes_[f]) == extent;
        }
      }
    }
  }
}

ShardingBuilder FactorAssignment::Dims(int t) const {
  const TensorFactors& tensor = rule_.tensor(t);
  ShardingBuilder b(mesh_, static_cast<int>(tensor.dims.size()));
  for (size_t d = 0; d < tensor.dims.size(); ++d) {
    for (int f : tensor.dims[d]) {
      b.dims[d].insert(b.dims[d].end(), axes_[f].begin(), axes_[f].end());
    }
  }
  b.manual.assign(manual_.begin(), manual_.end());
  return b;
}

// A result is partial over the reduction factors that it does not have.
bool FactorAssignment::LeavesPartial(int t, int f) const {
  if (axes_[f].empty() || rule_.factors[f].kind != FactorKind::kReduction) return false;
  for (const FactorList& factors : rule_.tensor(t).dims) {
    if (std::find(factors.begin(), factors.end(), f) != factors.end()) return false;
  }
  return true;
}

bool FactorAssignment::IsUnreduced(int t, const Sharding& s) const {
  const TensorFactors& tensor = rule_.tensor(t);
  if (s.mesh() != mesh_ || s.is_maximal() || !s.partial().empty() || s.manual() != manual_ ||
      s.rank() != static_cast<int>(tensor.dims.size())) {
    return false;
  }
  for (int d = 0; d < s.rank(); ++d) {
    absl::Span<const AxisRef> rest = s.dim(d);
    for (int f : tensor.dims[d]) {
      for (AxisRef a : axes_[f]) {
        if (rest.empty() || rest.front() != a) return false;
        rest.remove_prefix(1);
      }
    }
    if (!rest.empty()) return false;
  }
  return true;
}

const Sharding* FactorAssignment::TensorSharding(Context& context, int t,
                                                 const Sharding* likely) const {
  absl::InlinedVector<int, 4> reduced;
  if (t >= static_cast<int>(rule_.operands.size())) {
    for (int f : assigned_) {
      if (LeavesPartial(t, f)) reduced.push_back(f);
    }
  }
  if (likely != nullptr && reduced.empty() && IsUnreduced(t, *likely)) return likely;
  ShardingBuilder b = Dims(t);
  for (int f : reduced) {
    b.partial.insert(b.partial.end(), axes_[f].begin(), axes_[f].end());
    b.partial_op = rule_.factors[f].reduction;
  }
  return b.Intern(context);
}

const Sharding* FactorAssignment::DimSharding(Context& context, int t) const {
  return Dims(t).Intern(context);
}

}  // namespace shardcall
