// SPDX-License-Identifier: Apache-2.0
// Which axes each factor of a rule is sharded by, and the translation between
// that and the shardings of the op's tensors. Propagation, the plan and partition
// callbacks that follow from a rule all translate here.
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

// Calls `take(factor, axes)` for the factors by which `s` cuts a tensor, in the
// order of its dimensions. Within a compound dimension a minor factor has axes only
// where all more major ones are down to extent 1, so that its parts are contiguous:
// of (a b) with a = 4, b = 6, sharded {"x", "y"} with x = 4, y = 2, a has x and b has
// y; with x = 2 a has x, and y is left. `extent(factor)` is that of this tensor.
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
  // `manual` axes are never assigned. `allowed` has every factor that may be
  // sharded. What `manual` and `rule` refer to must outlive the assignment.
  FactorAssignment(const ShardingRule& rule, const BaseMesh* mesh, absl::Span<const AxisRef> manual,
                   const IndexSet& allowed);

  // Takes over what `s` says of tensor `t`, where that contradicts nothing that
  // is assigned already. What lies on another mesh, or on one device, says nothing.
  void Project(int t, const Sharding& s);
  // Shards factor f, beyond what it is sharded over, over those of `axes` that nothing else has.
  void Extend(int f, absl::Span<const AxisRef> axes);
  // Makes the assignment one that every tensor can express: in a compound
  // dimension a minor factor is sharded only if every more major one is down
  // to extent 1, and factors of compounds divide evenly. Of reduction factors with
  // several ops those of the first one stay sharded.
  void Normalize();

  const BaseMesh* mesh() const { return mesh_; }
  absl::Span<const AxisList> axes() const { return axes_; }
  friend bool operator==(const FactorAssignment& a, const FactorAssignment& b) {
    return a.mesh_ == b.mesh_ && a.axes_ == b.axes_;
  }

  // What tensor t must be (operand) or becomes (result: partial over the
  // reduction factors that it lacks). Where that is `likely`, nothing is looked up.
  const Sharding* TensorSharding(Context& context, int t, const Sharding* likely = nullptr) const;
  // The same without the partial axes.
  const Sharding* DimSharding(Context& context, int t) const;

 private:
  ShardingBuilder Dims(int t) const;
  bool LeavesPartial(int t, int f) const;
  // Whether tensor t, with nothing partial, is `s`.
  bool IsUnreduced(int t, const Sharding& s) const;
  bool Conflicts(AxisRef a, int except) const;
  // Factor f goes on by what of `axes` is free, if that extends what it has.
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
