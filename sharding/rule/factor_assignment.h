// SPDX-License-Identifier: Apache-2.0
// The axes by which each factor of a rule is sharded, and the translation between them and the
// shardings of the op's tensors. Used by propagation, by the plan, and by partition callbacks that
// are made from a rule.
//
// Example: `i k, k j -> i j` with lhs [{"a"}, {"b"}] and rhs [{}, {}] gives
// i = {a}, k = {b}; the rhs then needs [{"b"}, {}], and the result is
// [{"a"}, {}] partial over {b}.
#ifndef SHARDCALL_SHARDING_RULE_FACTOR_ASSIGNMENT_H_
#define SHARDCALL_SHARDING_RULE_FACTOR_ASSIGNMENT_H_

#include "absl/container/inlined_vector.h"
#include "shardcall/sharding/base/index_set.h"
#include "shardcall/sharding/base/public.h"
#include "shardcall/sharding/rule/rule.h"
#include "shardcall/sharding/sharding.h"

namespace shardcall SHARDCALL_PUBLIC {

// Calls `take(factor, axes)` for the factors by which `s` shards a tensor, in the order of its
// dimensions. In a compound dimension a minor factor gets axes only if every more major one has
// extent 1 per shard, so that shards are contiguous. Example: (a b) with a = 4, b = 6 is sharded
// {"x", "y"}. With x = 4, y = 2, a gets x and b gets y; with x = 2, a gets x, and y is left out.
// `extent(factor)` is the factor's extent in this tensor.
template <typename Extent, typename Take>
void ProjectOntoFactors(const TensorFactors& tensor, const Sharding& s, const Extent& extent,
                        const Take& take) {
  for (int d = 0; d < static_cast<int>(tensor.dims.size()); ++d) {
    const FactorList& factors = tensor.dims[d];
    if (factors.empty() || s.dim(d).empty()) continue;
    if (factors.size() == 1) {
      take(factors[0], s.dim(d));
      continue;
    }
    AxisList rest(s.dim(d).begin(), s.dim(d).end());
    for (int f : factors) {
      const int64_t size = extent(f);
      const AxisList part = PrefixOfSize(*s.mesh(), rest, size);
      if (!part.empty()) take(f, absl::MakeConstSpan(part));
      if (AxesSize(part) != size) break;
      if (!part.empty()) rest = RemovePrefix(*s.mesh(), part, rest);
      if (rest.empty()) break;
    }
  }
}

class FactorAssignment {
 public:
  // `manual` axes are never assigned. `allowed` holds the factors that may be sharded. `manual` and
  // `rule` must outlive the assignment.
  FactorAssignment(const ShardingRule& rule, const BaseMesh* mesh, absl::Span<const AxisRef> manual,
                   const IndexSet& allowed);

  // Assigns the axes of tensor `t` under `s` where they do not conflict with earlier assignments. A
  // sharding on another mesh, or on one device, has no effect.
  void Project(int t, const Sharding& s);
  // Shards factor f further, over those of `axes` that nothing else uses.
  void Extend(int f, absl::Span<const AxisRef> axes);
  // Makes the assignment one that every tensor can express: in a compound dimension a minor factor
  // is sharded only if every more major one has extent 1 per shard, and axes must divide the
  // factors of compound dimensions. If reduction factors have different reduction ops, only those
  // with the op of the first one stay sharded.
  void Normalize();

  const BaseMesh* mesh() const { return mesh_; }
  absl::Span<const AxisList> axes() const { return axes_; }
  friend bool operator==(const FactorAssignment& a, const FactorAssignment& b) {
    return a.mesh_ == b.mesh_ && a.axes_ == b.axes_;
  }

  // The sharding that operand t must have, or that result t gets: partial over the reduction
  // factors that it does not have. If it equals `likely`, that is returned without a table lookup.
  const Sharding* TensorSharding(Context& context, int t, const Sharding* likely = nullptr) const;
  // The same without the partial axes.
  const Sharding* DimSharding(Context& context, int t) const;

 private:
  ShardingBuilder Dims(int t) const;
  bool LeavesPartial(int t, int f) const;
  // Whether the sharding of tensor t, without partial axes, is `s`.
  bool IsUnreduced(int t, const Sharding& s) const;
  bool Conflicts(AxisRef a, int except) const;
  // Sets the axes of factor f to the prefix of `axes` that is free, if that extends its present
  // axes.
  void Take(int f, absl::Span<const AxisRef> axes);
  AxisList FreePrefix(absl::Span<const AxisRef> axes, int factor) const;

  const ShardingRule& rule_;
  const BaseMesh* mesh_;
  absl::Span<const AxisRef> manual_;
  IndexSet allowed_;
  absl::InlinedVector<AxisList, 8> axes_;
  absl::InlinedVector<int, 8> assigned_;  // factors that have or had axes, in that order
};

}  // namespace shardcall

#endif  // SHARDCALL_SHARDING_RULE_FACTOR_ASSIGNMENT_H_
