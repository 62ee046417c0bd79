// SPDX-License-Identifier: Apache-2.0
// Dynamic-slice. Sharded dimensions are those that the slice takes whole. Their index is clamped to
// 0 on any shard, so only the sizes change.
#include "shardcall/partitioner/spmd/localize/localizer.h"
#include "shardcall/partitioner/spmd/plan/strategy.h"

namespace shardcall::inline internal {
namespace {

LocalIds Emit(Localizer& l, const LocalOp& op) {
  DynamicSliceAttrs attrs;
  attrs.sizes = op.result_shapes[0]->dims();
  return l.Clone(op, op.operands, InternAttributes(l.context(), attrs));
}

}  // namespace

constexpr Strategy kDynamicSliceStrategy{.name = "window", .emit = Emit};

}  // namespace shardcall::inline internal
