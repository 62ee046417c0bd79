// SPDX-License-Identifier: Apache-2.0
// Dot, convolution, reduce: ops that sum over factors. Where a shard of such a
// factor is padded, the padding must not count.
#include <cstring>
#include <vector>

#include "shardcall/partitioner/ir/monoid.h"
#include "shardcall/partitioner/spmd/localize/localizer.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
namespace {

// Dimensions of operand t that a sharded reduction factor makes uneven.
std::vector<int> UnevenReduced(const LocalOp& op, int t) {
  std::vector<int> dims;
  const ShardingRule* rule = op.decision.rule;
  if (rule == nullptr) return dims;
  const TensorFactors& tensor = rule->tensor(t);
  for (size_t d = 0; d < tensor.dims.size(); ++d) {
    for (int f : tensor.dims[d]) {
      const int64_t n = AxesSize(op.decision.factor_axes[f]);
      if (rule->factors[f].kind == FactorKind::kReduction && rule->Extent(t, f) % n != 0) {
        dims.push_back(static_cast<int>(d));
      }
    }
  }
  return dims;
}

bool IsIdentityConstant(const Module& m, InstrId id, Opcode monoid) {
  const Instruction& i = m.instr(id);
  if (i.opcode != Opcode::kConstant || !i.shape->IsArray() || i.shape->rank() != 0) return false;
  const Literal* literal = i.as<ConstantAttrs>().literal;
  for (ZeroSign zero : {ZeroSign::kPositive, ZeroSign::kExact}) {
    const Literal* identity = IdentityLiteral(m.context(), monoid, i.shape->element_type(), zero);
    if (identity != nullptr && identity->data.size() == literal->data.size() &&
        std::memcmp(identity->data.data(), literal->data.data(), literal->data.size()) == 0) {
      return true;
    }
  }
  return false;
}

}  // namespace

LocalIds HandleDot(Localizer& l, const LocalOp& op) {
  LocalIds operands = op.operands;
  GraphBuilder& b = l.builder();
  for (int t = 0; t < 2 && t < static_cast<int>(operands.size()); ++t) {
    // Zero on both sides: what stands in padding may be inf or nan.
    const std::vector<int> dims = UnevenReduced(op, t);
    if (dims.empty()) continue;
    operands[t] = l.emitter().MaskPadding(operands[t], op.operand_shapes[t],
                                          *op.decision.operands[t], dims,
                                          b.Zero(b.type(operands[t])));
  }
  return l.Clone(op, operands);
}

LocalIds HandleReduce(Localizer& l, const LocalOp& op) {
  LocalIds operands = op.operands;
  const int k = static_cast<int>(operands.size()) / 2;
  bool partial = false;
  for (const Sharding* s : op.decision.produced) partial = partial || !s->partial().empty();
  if (!partial) return l.Clone(op, operands);
  // A sharded reduction factor means a recognised monoid, so one operand.
  Opcode monoid = Opcode::kAdd;
  SHARDCALL_CHECK(RecognizeMonoid(l.global(), op.instr.as<ReduceAttrs>().to_apply, &monoid));
  GraphBuilder& b = l.builder();
  std::vector<std::pair<int, InstrId>> starts;
  for (int t = 0; t < k; ++t) {
    const ElementType type = b.type(operands[t]);
    const std::vector<int> dims = UnevenReduced(op, t);
    if (!dims.empty()) {
      operands[t] =
          l.emitter().MaskPadding(operands[t], op.operand_shapes[t], *op.decision.operands[t],
                                  dims, b.Identity(monoid, type, ZeroSign::kExact));
    }
    // Each shard starts from the identity; another init counts once. It is combined
    // behind: XLA drops an init where a shard has one element to reduce.
    if (!IsIdentityConstant(l.local(), operands[k + t], monoid)) {
      const Sharding* made = op.decision.produced[t];
      starts.emplace_back(
          t, l.emitter().OnFirst(operands[k + t], made->partial(), made->partial_op()));
      operands[k + t] = b.Identity(monoid, type, ZeroSign::kExact);
    }
  }
  LocalIds results = l.Clone(op, operands);
  for (const auto& [t, start] : starts) {
    results[t] = b.Binary(monoid, b.BroadcastScalar(start, b.shape(results[t])), results[t]);
  }
  return results;
}

}  // namespace shardcall
