// SPDX-License-Identifier: Apache-2.0
// Which axes each factor of a rule is sharded by, and the translation between
// that and the shardings of the op's tensors.
//
// Example: `i k, k j -> i j` with lhs [{"a"}, {"b"}] and rhs [{}, {}] gives
// i = {a}, k = {b}; the rhs then needs [{"b"}, {}], and the result is
// [{"a"}, {}] partial over {b}.
#ifndef SHARDCALL_PARTITIONER_SPMD_FACTOR_ASSIGNMENT_H_
#define SHARDCALL_PARTITIONER_SPMD_FACTOR_ASSIGNMENT_H_

#include "absl/container/inlined_vector.h"
#include "sharding/rule.h"
#include "sharding/sharding.h"

namespace shardcall {

class FactorAssignment {
 public:
  // `manual` axes are never assigned. `allowed` has a bit for every factor that
  // may be sharded.
  FactorAssignment(const ShardingRule& rule, const BaseMesh* mesh,
                   absl::Span<const AxisRef> manual, uint64_t allowed);

  // Takes over what `s` says of tensor `t`, where that contradicts nothing that
  // is assigned already.
  void Project(int t, const Sharding& s);
  // Makes the assignment one that every tensor can express: in a compound
  // dimension a minor factor is sharded only if every more major one is down
  // to extent 1, and factors of compounds divide evenly.
  void Normalize();

  absl::Span<const AxisList> axes() const { return axes_; }
  bool empty() const;
  friend bool operator==(const FactorAssignment& a, const FactorAssignment& b) {
    return a.axes_ == b.axes_;
  }

  // What tensor t must be (operand) or becomes (result: partial over the
  // reduction factors that it lacks).
  const Sharding* TensorSharding(Context& context, int t) const;
  // Product of the shard counts of all factors.
  double NumShards() const;

 private:
  bool Conflicts(AxisRef a, int except) const;
  // Factor f goes on by what of `axes` is free, if that extends what it has.
  void Take(int f, absl::Span<const AxisRef> axes);
  AxisList FreePrefix(absl::Span<const AxisRef> axes, int factor) const;

  const ShardingRule& rule_;
  const BaseMesh* mesh_;
  absl::Span<const AxisRef> manual_;
  uint64_t allowed_;
  absl::InlinedVector<AxisList, 8> axes_;
};

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_SPMD_FACTOR_ASSIGNMENT_H_
