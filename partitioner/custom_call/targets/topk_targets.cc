// SPDX-License-Identifier: Apache-2.0
// Rule of topk. Lines (the last dimension) are independent. A line may be sharded, too
// (ir/build/top_k_of_shards.h).
#include <algorithm>
#include <optional>
#include <vector>

#include "shardcall/kernels/ffi/attributes.h"
#include "shardcall/partitioner/custom_call/rule_callbacks.h"
#include "shardcall/partitioner/custom_call/targets/shipped_targets.h"
#include "shardcall/partitioner/ir/build/top_k_of_shards.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace {

absl::StatusOr<std::vector<InstrId>> Body(LocalCall& call, absl::Span<const InstrId> operands) {
  if (!call.IsSharded("n")) return call.CallTarget(operands);
  CheckedBuilder& b = call.builder();
  const absl::string_view config = call.call().backend_config;
  SHARDCALL_ASSIGN_OR_RETURN(const AttributeMapView attributes, AttributeMapView::Parse(config));
  SHARDCALL_ASSIGN_OR_RETURN(const bool largest, attributes.GetBool("largest", true));
  const int line = call.shape(operands[0])->rank() - 1;

  const auto best = [&](InstrId x, std::optional<InstrId> labels) -> absl::StatusOr<TopK> {
    std::vector<const Shape*> shapes;
    for (int r : {0, 1}) {
      const Shape* shape = call.LocalResult(r);
      std::vector<int64_t> dims(shape->dims().begin(), shape->dims().end());
      dims[line] = std::min(dims[line], b.shape(x)->dim(line));
      shapes.push_back(
          b.context().WithDefaultLayout(b.context().MakeArray(shape->element_type(), dims)));
    }
    std::vector<InstrId> from = {x};
    if (labels) from.push_back(*labels);
    SHARDCALL_ASSIGN_OR_RETURN(const std::vector<InstrId> found,
                               call.MakeCall(call.call().target, config, from, shapes));
    return TopK{found[0], found[1]};
  };
  const auto global_places = [&](InstrId places) -> absl::StatusOr<InstrId> {
    SHARDCALL_ASSIGN_OR_RETURN(InstrId start, call.Start("n"));
    SHARDCALL_ASSIGN_OR_RETURN(start, b.BroadcastScalar(start, b.shape(places)));
    return b.Add(Opcode::kAdd, {places, start});
  };
  const auto gather = [&](InstrId part) { return call.AllGather(part, line, "n"); };

  const ElementType type = b.type(operands[0]);
  SHARDCALL_ASSIGN_OR_RETURN(const InstrId last,
                             b.ConstantBits(type, LastOfAllBits(type, largest)));
  SHARDCALL_ASSIGN_OR_RETURN(const InstrId x, call.MaskOperand(operands[0], 0, line, last));
  std::optional<InstrId> labels;
  if (operands.size() > 1) labels = operands[1];
  SHARDCALL_ASSIGN_OR_RETURN(const TopK result,
                             TopKOfShards(x, labels, {best, global_places, gather}));
  return std::vector<InstrId>(result.begin(), result.end());
}

}  // namespace

absl::Status RegisterTopKTargets(TargetRegistry& registry) {
  return RegisterRuleWithBody(
      registry, "topk",
      {{.text = {.rule = "... n -> ... k, ... k", .need_replication = {"k"}},
        .types = "T -> T, s32"},
       {.text = {.rule = "... n, ... n -> ... k, ... k", .need_replication = {"k"}},
        .types = "T, s32 -> T, s32"}},
      Body, "built in");
}

}  // namespace internal
}  // namespace shardcall
