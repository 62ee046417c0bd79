// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/analysis/manual_boundary.h"

#include <utility>
#include <vector>

#include "shardcall/partitioner/ir/annotation_names.h"
#include "shardcall/partitioner/ir/known_targets.h"
#include "shardcall/sharding/rule/sdy_text.h"

namespace shardcall {
inline namespace internal {
namespace {

// The named sharding of array `k` of the value; null if there is none.
const NamedSharding* NamedOf(const Instruction& value, size_t k) {
  if (value.sharding == nullptr) return nullptr;
  const HloSharding* sharding = value.sharding;
  if (sharding->kind == HloSharding::Kind::kTuple) {
    if (k >= sharding->tuple.size()) return nullptr;
    sharding = &sharding->tuple[k];
  }
  return sharding->kind == HloSharding::Kind::kNamed ? &sharding->named : nullptr;
}

// The same of an operand, which may be an element of a tuple.
const NamedSharding* NamedOfOperand(const Module& module, InstrId operand) {
  const Instruction& value = module.instr(operand);
  if (value.sharding != nullptr || value.opcode != Opcode::kGetTupleElement) {
    return NamedOf(value, 0);
  }
  const auto index = static_cast<size_t>(value.as<TupleIndexAttrs>().index);
  const Instruction& tuple = module.instr(module.operand(operand, 0));
  return index < tuple.shape->tuple().size() ? NamedOf(tuple, index) : nullptr;
}

}  // namespace

ManualBoundaryText ManualBoundaryOf(const Module& module, const Instruction& boundary) {
  const bool enters = HasTrait(KnownTargetOf(boundary), kEntersManual);
  const absl::string_view key = enters ? kSdyInShardings : kSdyOutShardings;
  if (boundary.frontend != nullptr && boundary.frontend->Find(key).data() != nullptr) {
    return {std::string(boundary.frontend->Find(key)),
            std::string(boundary.frontend->Find(kSdyManualAxes))};
  }
  std::vector<NamedSharding> global;
  std::vector<std::string> axes;
  const absl::Span<const InstrId> operands = module.operands(boundary);
  for (size_t k = 0; k < operands.size(); ++k) {
    const NamedSharding* before = NamedOfOperand(module, operands[k]);
    const NamedSharding* after = NamedOf(boundary, k);
    const NamedSharding* whole = enters ? before : after;
    const NamedSharding* local = enters ? after : before;
    if (whole == nullptr || local == nullptr) return {};
    global.push_back(*whole);
    global.back().manual.clear();
    std::vector<std::string> manual;
    for (const NamedAxisRef& axis : local->manual) {
      if (axis.size > 0) return {};  // the attribute names whole axes only
      manual.push_back(axis.name);
    }
    if (k > 0 && manual != axes) return {};
    axes = std::move(manual);
  }
  if (axes.empty()) return {};
  return {SdyShardingPerValueText(global), SdyManualAxesText(axes)};
}

}  // namespace internal
}  // namespace shardcall
