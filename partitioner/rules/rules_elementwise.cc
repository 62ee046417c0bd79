// SPDX-License-Identifier: Apache-2.0
// Elementwise ops use PointwiseRule. These are the ones that are elementwise except in one
// dimension.
#include <algorithm>

#include "shardcall/partitioner/rules/rule_builder.h"

namespace shardcall {
inline namespace internal {

// f32[4,8] -> u8[4,8,4]: each element of the wider type becomes a new minor dimension, or the
// reverse.
ShardingRule BitcastConvertRule(const RuleArgs& args) {
  RuleBuilder b(args);
  const int shared = std::min(args.rank(0), args.rank(1));
  for (int d = 0; d < shared; ++d) b.MapWhole(1, d, b.AddFor(0, d));
  return b.Build();
}

// The size of a dimension is that of the global array, not of a shard.
ShardingRule DimensionSizeRule(const RuleArgs& args) {
  const Ints dims = args.instr.as<DimensionsAttrs>().dimensions;
  RuleBuilder b(args);
  const bool sets = args.instr.opcode == Opcode::kSetDimensionSize;
  const int result = args.num_operands();
  for (int d = 0; d < args.rank(0); ++d) {
    // The size of a static dimension is known, however it is sharded.
    const bool whole = ContainsDim(dims, d) && (sets || args.tensor(0)->IsDynamicDim(d));
    const int f = b.AddFor(0, d, whole ? FactorKind::kNeedReplication : FactorKind::kPassThrough);
    if (sets) b.MapWhole(result, d, f);
  }
  return b.Build();
}

}  // namespace internal
}  // namespace shardcall
