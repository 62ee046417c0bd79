// SPDX-License-Identifier: Apache-2.0
// Shared by the strategies that read what a slice or a pad was made of (plan/sources.h). The
// operand itself is then not needed on shards, and is not computed where nothing else reads it.
#ifndef SHARDCALL_PARTITIONER_SPMD_STRATEGIES_PARTS_READ_THROUGH_H_
#define SHARDCALL_PARTITIONER_SPMD_STRATEGIES_PARTS_READ_THROUGH_H_

#include "absl/functional/function_ref.h"
#include "shardcall/partitioner/spmd/localize/op_builder.h"
#include "shardcall/partitioner/spmd/plan/strategy.h"

namespace shardcall {
inline namespace internal {

// Strategy::rule of these: the op's own, if an operand has a source.
bool HasSource(const OpQuery& op, ShardingRule* rule);

// Whether an operand of that shape has a source that is sharded as the result, and differs from it
// along dimension d alone.
bool ReadsAlong(const Source& source, const Shape* operand, const Sharding* result, int d);
// The only dimension along which the result is sharded and differs from the source of the operand,
// if ReadsAlong holds for it; else -1. `changes`: whether the op itself changes a dimension.
int DimReadAlong(const Source& source, const Shape* operand, const Sharding* result,
                 absl::FunctionRef<bool(int)> changes);

// The ranges of rows of an operand as ranges of its source.
ShardRanges RangesOfSource(const Source& source, int d, const ShardRanges& of_operand);
// Charges the candidate with the exchange of the source along dimension d.
void AddReadThrough(Context& context, const Source& source, int d, const ShardRanges& ranges,
                    Candidate* c);
// The rows of a source that this device needs. Rows that the operand has as padding are set.
InstrId ReadThrough(OpBuilder& ops, const LocalSource& from, int d, const ShardRanges& ranges);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_SPMD_STRATEGIES_PARTS_READ_THROUGH_H_
