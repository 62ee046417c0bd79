// SPDX-License-Identifier: Apache-2.0
// Shared by the strategies that exchange halos.
#ifndef SHARDCALL_PARTITIONER_SPMD_STRATEGIES_PARTS_EXCHANGED_H_
#define SHARDCALL_PARTITIONER_SPMD_STRATEGIES_PARTS_EXCHANGED_H_

#include <cstdint>
#include <vector>

#include "shardcall/partitioner/spmd/localize/op_builder.h"

namespace shardcall {
inline namespace internal {

// Strategy::crosses of those that exchange any dimension of operand 0 that is one factor.
bool HasDimInFirst(const OpQuery& op, int f);

// Operand k of the op, after its exchanges, with `fill` (a scalar) where they have brought elements
// from outside of the operand.
InstrId FilledOutside(OpBuilder& ops, const LocalOp& op, int k, InstrId fill);

// Along dimension `dim` of the results, each shard over `axes` has computed `surplus` more places
// than its tile has, which begins at begins[shard].
struct Surplus {
  int dim;
  int64_t size;
  absl::Span<const AxisRef> axes;
  std::vector<int64_t> begins;
};
// As OpBuilder::Clone, for an op that computes more than its tiles, which are then cut out.
LocalIds CloneAndCut(OpBuilder& ops, const LocalOp& op, absl::Span<const InstrId> operands,
                     const Attributes* attrs, absl::Span<const Surplus> surplus);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_SPMD_STRATEGIES_PARTS_EXCHANGED_H_
