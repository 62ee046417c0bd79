// SPDX-License-Identifier: Apache-2.0
// Ops that run on shards unchanged.
#include "shardcall/partitioner/spmd/localize/localizer.h"
#include "shardcall/partitioner/spmd/plan/strategy.h"

namespace shardcall::inline internal {
namespace {

LocalIds Emit(Localizer& l, const LocalOp& op) { return l.Clone(op, AssembleOperands(l, op)); }

}  // namespace

constexpr Strategy kLocalStrategy{.name = "local", .emit = Emit};

}  // namespace shardcall::inline internal
