// SPDX-License-Identifier: Apache-2.0
// Dynamic-slice. Sharded dimensions are those that the slice takes whole. Their index is clamped to
// 0 on any shard, so only the sizes change.
#include "shardcall/partitioner/spmd/strategies/strategy.h"

namespace shardcall::inline internal {
namespace {

LocalIds Emit(Localizer& l, const LocalOp& op) {
  DynamicSliceAttrs attrs;
  attrs.sizes = op.result_shapes[0]->dims();
  return l.Clone(op, op.operands, InternAttributes(l.context(), attrs));
}

}  // namespace

constexpr Strategy kDynamicSliceStrategy{"window", nullptr, nullptr, Emit};

}  // namespace shardcall::inline internal
