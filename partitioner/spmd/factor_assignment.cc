// SPDX-License-Identifier: Apache-2.0
#include "partitioner/spmd/factor_assignment.h"

namespace shardcall {

FactorAssignment::FactorAssignment(const ShardingRule& rule, const BaseMesh* mesh,
                                   absl::Span<const AxisRef> manual, uint64_t allowed)
    : rule_(rule), mesh_(mesh), manual_(manual), allowed_(allowed), axes_(rule.factors.size()) {}

bool FactorAssignment::Conflicts(AxisRef a, int except) const {
  for (AxisRef m : manual_) {
    if (Overlaps(a, m)) return true;
  }
  for (int f = 0; f < static_cast<int>(axes_.size()); ++f) {
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
  if (axes_[f].empty() || IsPrefix(*mesh_, axes_[f], free)) axes_[f] = std::move(free);
}

void FactorAssignment::Project(int t, const Sharding& s) {
  if (s.mesh() != mesh_ || s.is_maximal()) return;
  const TensorFactors& tensor = rule_.tensor(t);
  for (size_t d = 0; d < tensor.dims.size(); ++d) {
    const FactorList& factors = tensor.dims[d];
    if (factors.empty() || s.dim(d).empty()) continue;
    if (factors.size() == 1) {
      const int f = factors[0];
      if ((allowed_ >> f & 1) && absl::MakeConstSpan(axes_[f]) != s.dim(d)) Take(f, s.dim(d));
      continue;
    }
    AxisList rest(s.dim(d).begin(), s.dim(d).end());
    for (size_t i = 0; i < factors.size() && !rest.empty(); ++i) {
      const int f = factors[i];
      const int64_t extent = rule_.Extent(t, f);
      if (extent == 1) continue;
      const AxisList take = PrefixOfSize(*mesh_, rest, extent);
      if (take.empty()) break;
      if (allowed_ >> f & 1) Take(f, take);
      if (AxesSize(take) != extent) break;  // a minor factor would not be contiguous
      rest = RemovePrefix(*mesh_, take, rest);
    }
  }
}

void FactorAssignment::Normalize() {
  for (bool changed = true; changed;) {
    changed = false;
    for (int t = 0; t < rule_.num_tensors(); ++t) {
      for (const FactorList& factors : rule_.tensor(t).dims) {
        if (factors.size() < 2) continue;
        bool whole = true;  // every more major factor is down to extent 1
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

bool FactorAssignment::empty() const {
  for (const AxisList& a : axes_) {
    if (!a.empty()) return false;
  }
  return true;
}

const Sharding* FactorAssignment::TensorSharding(Context& context, int t) const {
  const TensorFactors& tensor = rule_.tensor(t);
  ShardingBuilder b(mesh_, static_cast<int>(tensor.dims.size()));
  uint64_t present = 0;
  for (size_t d = 0; d < tensor.dims.size(); ++d) {
    for (int f : tensor.dims[d]) {
      present |= uint64_t{1} << f;
      b.dims[d].insert(b.dims[d].end(), axes_[f].begin(), axes_[f].end());
    }
  }
  if (t >= static_cast<int>(rule_.operands.size())) {
    for (size_t f = 0; f < axes_.size(); ++f) {
      if (rule_.factors[f].kind != FactorKind::kReduction || (present >> f & 1)) continue;
      b.partial.insert(b.partial.end(), axes_[f].begin(), axes_[f].end());
      if (!axes_[f].empty()) b.partial_op = rule_.factors[f].reduction;
    }
  }
  b.manual.assign(manual_.begin(), manual_.end());
  return b.Intern(context);
}

double FactorAssignment::NumShards() const {
  double n = 1;
  for (const AxisList& a : axes_) n *= static_cast<double>(AxesSize(a));
  return n;
}

}  // namespace shardcall
