// SPDX-License-Identifier: Apache-2.0
// Custom calls by their rule: padding gets the rule's pad value, and layout constraints and called
// computations are adapted to the shards.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/custom_call/attribute_formulas.h"
#include "shardcall/partitioner/custom_call/call_view.h"
#include "shardcall/partitioner/ir/analysis/called_computations.h"
#include "shardcall/partitioner/ir/build/nearest_literal.h"
#include "shardcall/partitioner/ir/known_targets.h"
#include "shardcall/partitioner/spmd/localize/op_builder.h"
#include "shardcall/partitioner/spmd/plan/strategy.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace {

// E122 unless each result that aliases an operand has the operand's local shape.
absl::Status CheckAliases(OpBuilder& ops, const LocalOp& op) {
  const CustomCallView view = ViewCustomCall(ops.global(), op.id, ops.program().mesh, {});
  for (const CustomCallView::Alias& a : view.aliases) {
    const Shape* result = op.result_shapes[a.result];
    const Shape* operand = ops.builder().shape(op.operands[a.operand]);
    if (result->bare() == operand->bare()) continue;
    return ToStatus({.code = "E122",
                     .message = absl::StrCat("target \"", view.target, "\" (%", view.instruction,
                                             "): result ", a.result, " aliases operand ", a.operand,
                                             ", and its rule shards them otherwise"),
                     .expected = operand->ToString(false),
                     .found = result->ToString(false),
                     .fix = "Give both the same factors in the rule, or leave the alias out"});
  }
  return absl::OkStatus();
}

// The signature in the registry that the call's rule is of; null if the rule is from elsewhere.
const RuleAlternative* SignatureOf(OpBuilder& ops, const LocalOp& op) {
  const TargetRule* const target = ops.rules().target(op.id);
  if (target == nullptr || target->level != RuleLevel::kRule) return nullptr;
  std::vector<const Shape*> results;
  for (int k = 0; k < op.instr.shape->num_leaves(); ++k) results.push_back(op.instr.shape->leaf(k));
  return target->Choose(op.instr.backend_config, op.operand_shapes, results);
}

// The call's attributes on a shard, as its rule says that they follow. E126 if a kernel that states
// its grid is cut by a rule that says nothing of it; E125 as for ConfigOfShard.
absl::StatusOr<absl::string_view> LocalConfig(OpBuilder& ops, const LocalOp& op) {
  const ShardingRule* const rule = op.decision.rule;
  if (rule == nullptr) return op.instr.backend_config;
  std::vector<int64_t> sizes;
  bool cut = false;
  for (size_t f = 0; f < rule->factors.size(); ++f) {
    const int64_t shards =
        f < op.decision.factor_axes.size() ? AxesSize(op.decision.factor_axes[f]) : 1;
    cut = cut || shards > 1;
    sizes.push_back((rule->factors[f].size + shards - 1) / shards);
  }
  if (!cut) return op.instr.backend_config;
  const absl::string_view target = op.instr.as<CustomCallAttrs>().target;
  const RuleAlternative* const signature = SignatureOf(ops, op);
  if (signature == nullptr || signature->attributes.empty()) {
    if (!HasTrait(KnownTargetOf(op.instr), kStatesGrid)) return op.instr.backend_config;
    return ToStatus(
        {.code = "E126",
         .message = absl::StrCat("target \"", target, "\" (%", op.instr.name,
                                 ") states the grid of its kernel, and its rule cuts the call"),
         .expected = "formulas for its attributes, such as grid_x",
         .found = "none",
         .fix = "Say with the rule how they follow the shard, \"attributes\": {\"grid_x\": \"m / "
                "16\"}, or call it in a shard_map"});
  }
  const absl::StatusOr<std::string> config =
      ConfigOfShard(signature->attributes, target, op.instr.backend_config, *rule, sizes);
  if (!config.ok()) return In(config.status(), absl::StrCat("%", op.instr.name));
  return ops.context().Intern(*config);
}

LocalIds Emit(OpBuilder& ops, const LocalOp& op) {
  GraphBuilder& b = ops.builder();
  const absl::StatusOr<absl::string_view> config = LocalConfig(ops, op);
  ops.Fail(config.status());
  Instruction instr = op.instr;
  if (config.ok()) instr.backend_config = *config;
  LocalOp padded{op.id, instr, op.decision, op.operands, op.operand_shapes, op.result_shapes};
  const ShardingRule* rule = op.decision.rule;
  // Fill the operands' padding along uneven factors with the rule's pad value: the neutral element
  // of a reduction, or a value that the kernel accepts where nobody reads the result.
  for (size_t t = 0; rule != nullptr && t < op.operands.size(); ++t) {
    if (!op.operand_shapes[t]->IsArray()) continue;
    const TensorFactors& tensor = rule->tensor(static_cast<int>(t));
    for (size_t d = 0; d < tensor.dims.size(); ++d) {
      for (int f : tensor.dims[d]) {
        const Factor& factor = rule->factors[f];
        const bool sharded =
            factor.kind == FactorKind::kReduction || factor.kind == FactorKind::kPassThrough;
        if (!sharded || !factor.has_pad) continue;
        padded.operands[t] = ops.emitter().MaskPadding(
            padded.operands[t], op.operand_shapes[t], *op.decision.operands[t],
            {static_cast<int>(d)},
            b.Constant(NearestLiteral(ops.context(), b.type(padded.operands[t]), factor.pad)));
      }
    }
  }
  CustomCallAttrs attrs = op.instr.as<CustomCallAttrs>();
  if (!attrs.output_to_operand_aliasing.empty()) ops.Fail(CheckAliases(ops, padded));
  const LocalIds operands = AssembleOperands(ops, padded);
  std::vector<const Shape*> layouts;
  if (attrs.has_layout_constraints) {
    for (size_t k = 0; k < attrs.operand_layouts.size() && k < operands.size(); ++k) {
      const Shape* layout = attrs.operand_layouts[k];
      std::vector<const Shape*> leaves;
      const LocalIds flat = ops.Flatten(operands[k]);
      for (int i = 0; i < layout->num_leaves(); ++i) {
        const Shape* leaf = layout->leaf(i);
        leaves.push_back(leaf->IsArray() ? ops.context().WithDims(leaf, b.shape(flat[i])->dims())
                                         : leaf);
      }
      layouts.push_back(ops.ShapeFromLeaves(layout, leaves));
    }
    attrs.operand_layouts = layouts;
  }
  std::vector<CompId> called;
  for (CompId c : attrs.called_computations) called.push_back(ops.CopyComputation(c));
  attrs.called_computations = called;
  return ops.Clone(padded, operands, InternAttributes(ops.context(), attrs));
}

}  // namespace

constexpr Strategy kCustomCallStrategy{.name = "padded", .emit = Emit};

}  // namespace internal
}  // namespace shardcall
