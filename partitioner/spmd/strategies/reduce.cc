// SPDX-License-Identifier: Apache-2.0
// Reduce over a sharded dimension: padding is set to the identity, and another init value is
// counted once.
#include <vector>

#include "shardcall/partitioner/ir/analysis/identity_constant.h"
#include "shardcall/partitioner/ir/monoid.h"
#include "shardcall/partitioner/spmd/localize/localizer.h"
#include "shardcall/partitioner/spmd/plan/strategy.h"
#include "shardcall/partitioner/spmd/strategies/masked.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall::inline internal {
namespace {

LocalIds Emit(Localizer& l, const LocalOp& op) {
  LocalIds operands = op.operands;
  const int k = static_cast<int>(operands.size()) / 2;
  bool partial = false;
  for (const Sharding* s : op.decision.produced) partial = partial || !s->partial().empty();
  if (!partial) return l.Clone(op, operands);
  // Reduction factors are sharded only if the reducer is a recognised monoid.
  Opcode monoid = Opcode::kAdd;
  SHARDCALL_CHECK(RecognizeMonoid(l.global(), op.instr.as<ReduceAttrs>().to_apply, &monoid));
  GraphBuilder& b = l.builder();
  std::vector<std::pair<int, InstrId>> starts;
  for (int t = 0; t < k; ++t) {
    const ElementType type = b.type(operands[t]);
    const std::vector<int> dims = UnevenReduced(op, t);
    if (!dims.empty()) {
      operands[t] =
          l.emitter().MaskPadding(operands[t], op.operand_shapes[t], *op.decision.operands[t], dims,
                                  b.Identity(monoid, type, ZeroSign::kExact));
    }
    // Each shard starts from the identity. Another init counts on one device only, unless it may
    // count twice, and is combined after the reduce: XLA drops an init where a shard has one
    // element to reduce.
    if (!IsIdentityConstant(l.local(), operands[k + t], monoid)) {
      const Sharding* made = op.decision.produced[t];
      starts.emplace_back(
          t, IsIdempotent(monoid)
                 ? operands[k + t]
                 : l.emitter().OnFirst(operands[k + t], made->partial(), made->partial_op()));
      operands[k + t] = b.Identity(monoid, type, ZeroSign::kExact);
    }
  }
  LocalIds results = l.Clone(op, operands);
  for (const auto& [t, start] : starts) {
    results[t] = b.Binary(monoid, b.BroadcastScalar(start, b.shape(results[t])), results[t]);
  }
  return results;
}

}  // namespace

constexpr Strategy kReduceStrategy{.name = "masked reduction", .emit = Emit};

}  // namespace shardcall::inline internal
