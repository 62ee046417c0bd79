// SPDX-License-Identifier: Apache-2.0
// Lowers custom calls to calls of handlers, which run_custom_call.cc makes.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "shardcall/partitioner/ir/analysis/output_aliasing.h"
#include "shardcall/partitioner/ir/attribute_words.h"
#include "shardcall/partitioner/ir/known_targets.h"
#include "shardcall/partitioner/runtime/lower/lower_op.h"
#include "shardcall/partitioner/runtime/ops/custom_call/run_custom_call.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace {

Dims MajorToMinor(const LeafShape& shape) {
  if (shape.HasDescendingLayout()) return {};
  return Dims(shape.minor_to_major.rbegin(), shape.minor_to_major.rend());
}

std::string DescribeLeaf(const LeafShape& leaf) { return TypeAndDims(leaf.type, leaf.dims); }

// The flat leaf at an index; -1 if there is none, or if it is a tuple.
int LeafAt(const Shape* shape, absl::Span<const int64_t> index) {
  const Shape* part = PartAt(shape, index);
  return part == nullptr || part->IsTuple() ? -1 : FirstLeafAt(shape, index);
}

// For each result leaf: the operand leaf that it aliases.
absl::Status FindAliases(const LowerContext& context, absl::string_view text,
                         std::vector<int>* alias) {
  const auto misfit = [&] {
    return context.Error("E311", "output_to_operand_aliasing does not fit operands and results");
  };
  std::vector<OutputAlias> entries;
  if (!ParseOutputAliasing(text, &entries)) return misfit();
  for (const OutputAlias& a : entries) {
    if (a.operand < 0 || a.operand >= context.num_operands()) return misfit();
    const int operand = static_cast<int>(a.operand);
    const int result = LeafAt(context.instr.shape, a.output);
    int leaf = LeafAt(context.operand_shape(operand), a.inner);
    if (result < 0 || leaf < 0) return misfit();
    for (int k = 0; k < operand; ++k) leaf += context.operand_shape(k)->num_leaves();
    for (int other : *alias) {
      if (other == leaf) {
        return context.Error("E311", "two results alias one operand",
                             "Alias each operand to one result at most");
      }
    }
    (*alias)[result] = leaf;
  }
  return absl::OkStatus();
}

// The leaf shapes of a called computation.
CustomCallData::Computation CalledComputation(const LowerContext& context, CompId id) {
  CustomCallData::Computation called;
  called.index = context.computation(id);
  const Computation& comp = context.module.comp(id);
  for (InstrId p : comp.parameters) {
    const Shape& shape = *context.module.instr(p).shape;
    for (int l = 0; l < shape.num_leaves(); ++l) {
      called.parameters.push_back(MakeLeafShape(*shape.leaf(l)));
    }
  }
  const Shape& result = *context.module.instr(comp.root).shape;
  for (int l = 0; l < result.num_leaves(); ++l) {
    called.results.push_back(MakeLeafShape(*result.leaf(l)));
  }
  return called;
}

// Sets the order in which each leaf's dimensions are laid out.
absl::Status FindOrders(const LowerContext& context, absl::Span<const LeafShape> results,
                        CustomCallData* data) {
  const auto& attrs = context.attrs<CustomCallAttrs>();
  for (int k = 0; k < context.num_operands(); ++k) {
    const Shape* shape = context.operand_shape(k);
    const Shape* layout = shape;
    if (attrs.has_layout_constraints) {
      if (attrs.operand_layouts.size() != context.num_operands() ||
          attrs.operand_layouts[k]->num_leaves() != shape->num_leaves()) {
        return context.Error("E311", "one layout per operand is needed");
      }
      layout = attrs.operand_layouts[k];
    }
    for (int l = 0; l < shape->num_leaves(); ++l) {
      data->operand_order.push_back(
          attrs.has_layout_constraints ? MajorToMinor(MakeLeafShape(*layout->leaf(l))) : Dims{});
    }
  }
  for (const LeafShape& shape : results) {
    data->result_order.push_back(attrs.has_layout_constraints ? MajorToMinor(shape) : Dims{});
  }
  return absl::OkStatus();
}

// Checks that each result has the shape and layout of the operand that it aliases.
absl::Status CheckAliases(const LowerContext& context, absl::Span<const LeafShape> results,
                          const CustomCallData& data) {
  std::vector<const Shape*> operand_leaves;
  for (int k = 0; k < context.num_operands(); ++k) {
    for (int l = 0; l < context.operand_shape(k)->num_leaves(); ++l) {
      operand_leaves.push_back(context.operand_shape(k)->leaf(l));
    }
  }
  for (size_t r = 0; r < data.alias.size(); ++r) {
    if (data.alias[r] < 0) continue;
    const LeafShape other = MakeLeafShape(*operand_leaves[data.alias[r]]);
    if (other.type != results[r].type || other.dims != results[r].dims ||
        data.operand_order[data.alias[r]] != data.result_order[r]) {
      return context.Error(
          "E311",
          absl::StrCat("result ", r, " aliases an operand of another shape or layout: expected ",
                       DescribeLeaf(results[r]), ", found ", DescribeLeaf(other)),
          "Leave the pair out of output_to_operand_aliasing, or give both one shape and layout");
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status LowerCustomCall(const LowerContext& context, Step* step) {
  const auto& attrs = context.attrs<CustomCallAttrs>();
  if (HasTrait(KnownTargetOf(context.instr), kManualBoundaryTarget)) {
    return LowerManualBoundary(context, step);
  }
  if (attrs.api_version < 1 || attrs.api_version > 4) {
    return context.Error(
        "E140",
        absl::StrCat("the call of \"", attrs.target, "\" has API version ", attrs.api_version,
                     attrs.api_version == 0 ? " (unspecified)" : "",
                     ", so that it is not known what its handler takes; "
                     "there are 1 to 4"),
        "Write api_version=API_VERSION_TYPED_FFI (custom_call_api_version 4), or "
        "the version of the handler");
  }
  auto data = std::make_unique<CustomCallData>();
  data->target = std::string(attrs.target);
  data->backend_config = std::string(context.instr.backend_config);
  data->api_version = static_cast<int>(attrs.api_version);
  data->tuple_result = context.instr.shape->IsTuple();
  for (CompId id : attrs.called_computations) {
    if (!id.valid()) return context.Error("E311", "the called computation is missing");
    data->computations.push_back(CalledComputation(context, id));
  }
  if (attrs.api_version == kTypedFfiCall) {
    SHARDCALL_ASSIGN_OR_RETURN(data->attributes,
                               AttributeMapView::Parse(context.instr.backend_config));
  }
  SHARDCALL_RETURN_IF_ERROR(FindOrders(context, step->shapes, data.get()));
  data->alias.assign(step->shapes.size(), -1);
  SHARDCALL_RETURN_IF_ERROR(FindAliases(context, attrs.output_to_operand_aliasing, &data->alias));
  SHARDCALL_RETURN_IF_ERROR(CheckAliases(context, step->shapes, *data));
  step->fn = RunCustomCall;
  step->data = std::move(data);
  return absl::OkStatus();
}

}  // namespace internal
}  // namespace shardcall
