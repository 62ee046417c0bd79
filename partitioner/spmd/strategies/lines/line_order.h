// SPDX-License-Identifier: Apache-2.0
// The order of a sort's line when it is sorted in parts. Elements of one operand that rank alike
// are the same where they are compared as they are, by their whole value. Otherwise their places in
// the whole line decide, which each element takes with it: so the order of one device comes out,
// and padding is last.
#ifndef SHARDCALL_PARTITIONER_SPMD_STRATEGIES_LINES_LINE_ORDER_H_
#define SHARDCALL_PARTITIONER_SPMD_STRATEGIES_LINES_LINE_ORDER_H_

#include "absl/container/inlined_vector.h"
#include "shardcall/partitioner/spmd/localize/op_builder.h"
#include "shardcall/partitioner/spmd/plan/candidate.h"

namespace shardcall {
inline namespace internal {

// Bytes of a shard of each array that is sorted: of the operands of a sort, which are in state `s`,
// and of their places, if elements take them with them.
absl::InlinedVector<double, 3> BytesOfLine(const OpQuery& op, const Sharding& s);

class LineOrder {
 public:
  // Of a sort whose operands are sharded along the sorted dimension. Emits what it needs.
  LineOrder(OpBuilder& ops, const LocalOp& op);

  // The arrays to sort: the operands, whose padding is last, and maybe their places behind them.
  const LocalIds& line() const { return line_; }
  // Sorts parts of these arrays, which may come from several shards.
  void Sort(LocalIds* part) const;
  // Whether an element ranks before another one. Its parameters are as those of a sort's
  // comparison.
  CompId before() const { return before_; }

 private:
  InstrId Places(const LocalOp& op) const;
  // The comparison of elements that have their places with them.
  CompId WithPlaces(CompId comparison, size_t operands, int64_t extent) const;

  OpBuilder& ops_;
  GraphBuilder& b_;
  LocalIds line_;
  int place_ = -1;  // which of them has the places
  CompId before_;
  const Attributes* sort_ = nullptr;
};

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_SPMD_STRATEGIES_LINES_LINE_ORDER_H_
