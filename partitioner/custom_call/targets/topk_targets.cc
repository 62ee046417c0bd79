// SPDX-License-Identifier: Apache-2.0
// Rule of topk. Lines (the last dimension) are independent. A line may be sharded too: each device
// finds the k best elements of its shard, and the k best of these are the result.
#include <algorithm>
#include <vector>

#include "shardcall/kernels/ffi/attributes.h"
#include "shardcall/partitioner/custom_call/rule_callbacks.h"
#include "shardcall/partitioner/custom_call/targets/shipped_targets.h"
#include "shardcall/partitioner/ir/build/last_of_all.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace {

absl::StatusOr<std::vector<InstrId>> TopK(LocalCall& call, absl::Span<const InstrId> operands) {
  if (!call.IsSharded("n")) return call.CallTarget(operands);
  CheckedBuilder& b = call.builder();
  const absl::string_view config = call.call().backend_config;
  SHARDCALL_ASSIGN_OR_RETURN(const AttributeMapView attributes, AttributeMapView::Parse(config));
  SHARDCALL_ASSIGN_OR_RETURN(const bool largest, attributes.GetBool("largest", true));
  const int line = call.shape(operands[0])->rank() - 1;
  const ElementType type = b.type(operands[0]);

  SHARDCALL_ASSIGN_OR_RETURN(const InstrId last,
                             b.ConstantBits(type, LastOfAllBits(type, largest)));
  SHARDCALL_ASSIGN_OR_RETURN(const InstrId x, call.MaskOperand(operands[0], 0, line, last));
  InstrId labels;
  if (operands.size() > 1) {
    labels = operands[1];
  } else {
    SHARDCALL_ASSIGN_OR_RETURN(const InstrId index,
                               b.Iota(ElementType::kS32, b.shape(x)->dims(), line));
    SHARDCALL_ASSIGN_OR_RETURN(InstrId start, call.Start("n"));
    SHARDCALL_ASSIGN_OR_RETURN(start, b.BroadcastScalar(start, b.shape(index)));
    SHARDCALL_ASSIGN_OR_RETURN(labels, b.Add(Opcode::kAdd, {index, start}));
  }
  std::vector<const Shape*> shapes;
  for (int r : {0, 1}) {
    const Shape* shape = call.LocalResult(r);
    std::vector<int64_t> dims(shape->dims().begin(), shape->dims().end());
    dims[line] = std::min(dims[line], call.Tile("n"));
    shapes.push_back(
        b.context().WithDefaultLayout(b.context().MakeArray(shape->element_type(), dims)));
  }
  SHARDCALL_ASSIGN_OR_RETURN(std::vector<InstrId> best,
                             call.MakeCall(call.call().target, config, {x, labels}, shapes));
  // Gather in the order of the line, so that among equals the first one wins.
  for (InstrId& part : best) {
    SHARDCALL_ASSIGN_OR_RETURN(part, call.AllGather(part, line, "n"));
  }
  return call.MakeCall(call.call().target, config, best,
                       {call.LocalResult(0), call.LocalResult(1)});
}

}  // namespace

absl::Status RegisterTopKTargets(TargetRegistry& registry) {
  return RegisterRuleWithBody(
      registry, "topk",
      {{.text = {.rule = "... n -> ... k, ... k", .need_replication = {"k"}},
        .types = "T -> T, s32"},
       {.text = {.rule = "... n, ... n -> ... k, ... k", .need_replication = {"k"}},
        .types = "T, s32 -> T, s32"}},
      TopK, "built in");
}

}  // namespace internal
}  // namespace shardcall
