// SPDX-License-Identifier: Apache-2.0
// Custom calls by their rule: padding gets the rule's pad value, and layout constraints and called
// computations are adapted to the shards.
#include <vector>

#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/custom_call/call_view.h"
#include "shardcall/partitioner/ir/analysis/called_computations.h"
#include "shardcall/partitioner/spmd/localize/localizer.h"
#include "shardcall/partitioner/spmd/plan/strategy.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall::inline internal {
namespace {

// E122 unless each result that aliases an operand has the operand's local shape.
absl::Status CheckAliases(Localizer& l, const LocalOp& op) {
  const CustomCallView view = ViewCustomCall(l.global(), op.id, l.program().mesh, {});
  for (const CustomCallView::Alias& a : view.aliases) {
    const Shape* result = op.result_shapes[a.result];
    const Shape* operand = l.builder().shape(op.operands[a.operand]);
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

LocalIds Emit(Localizer& l, const LocalOp& op) {
  GraphBuilder& b = l.builder();
  LocalOp padded = op;
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
        padded.operands[t] = l.emitter().MaskPadding(
            padded.operands[t], op.operand_shapes[t], *op.decision.operands[t],
            {static_cast<int>(d)}, b.ConstantDouble(b.type(padded.operands[t]), factor.pad));
      }
    }
  }
  CustomCallAttrs attrs = op.instr.as<CustomCallAttrs>();
  if (!attrs.output_to_operand_aliasing.empty()) l.Fail(CheckAliases(l, padded));
  const LocalIds operands = AssembleOperands(l, padded);
  std::vector<const Shape*> layouts;
  if (attrs.has_layout_constraints) {
    for (size_t k = 0; k < attrs.operand_layouts.size() && k < operands.size(); ++k) {
      const Shape* layout = attrs.operand_layouts[k];
      std::vector<const Shape*> leaves;
      const LocalIds flat = l.Flatten(operands[k]);
      for (int i = 0; i < layout->num_leaves(); ++i) {
        const Shape* leaf = layout->leaf(i);
        leaves.push_back(leaf->IsArray() ? l.context().WithDims(leaf, b.shape(flat[i])->dims())
                                         : leaf);
      }
      layouts.push_back(l.ShapeFromLeaves(layout, leaves));
    }
    attrs.operand_layouts = layouts;
  }
  std::vector<CompId> called;
  for (CompId c : attrs.called_computations) called.push_back(l.CopyComputation(c));
  attrs.called_computations = called;
  return l.Clone(padded, operands, InternAttributes(l.context(), attrs));
}

}  // namespace

constexpr Strategy kCustomCallStrategy{.name = "padded", .emit = Emit};

}  // namespace shardcall::inline internal
