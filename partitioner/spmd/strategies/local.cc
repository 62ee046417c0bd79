// SPDX-License-Identifier: Apache-2.0
// Ops that run on shards unchanged.
#include "shardcall/partitioner/spmd/strategies/strategy.h"

namespace shardcall::inline internal {
namespace {

LocalIds Emit(Localizer& l, const LocalOp& op) { return l.Clone(op, AssembleOperands(l, op)); }

}  // namespace

constexpr Strategy kLocalStrategy{"local", nullptr, nullptr, Emit};

}  // namespace shardcall::inline internal
