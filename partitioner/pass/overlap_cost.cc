// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/pass/overlap_cost.h"

#include "shardcall/partitioner/ir/shapes/collective_bytes.h"
#include "shardcall/partitioner/ir/shapes/instruction_cost.h"
#include "shardcall/partitioner/ir/shapes/shape_inference.h"

namespace shardcall {
inline namespace internal {
namespace {

constexpr double kMicroseconds = 1e6;

}  // namespace

bool CanOverlap(const Module& m, const Instruction& i) {
  if (!HasTrait(i.opcode, kCollectiveOp) || HasTrait(i.opcode, kAsyncForm)) return false;
  if (i.opcode == Opcode::kCollectivePermute && !i.as<PermuteAttrs>().slice_sizes.empty()) {
    return false;
  }
  for (InstrId operand : m.operands(i)) {
    const Shape& shape = *m.instr(operand).shape;
    if (!shape.IsArray() || shape.IsDynamic()) return false;
  }
  return !i.shape->IsDynamic();
}

bool IsFree(const Instruction& i) { return HasTrait(i.opcode, kFree); }

OverlapCosts::OverlapCosts(const Module& module, const CostModel& cost)
    : m_(module), cost_(cost), comps_(module.num_computations()) {
  for (CompId c : ComputationPostOrder(module)) {
    for (InstrId id : module.comp(c).instructions) {
      const Instruction& i = module.instr(id);
      comps_[c.value] += CanOverlap(module, i) ? Transfer(id) : Work(id);
    }
  }
}

double OverlapCosts::Work(InstrId id) const {
  const Instruction& i = m_.instr(id);
  if (HasTrait(i.opcode, kAsyncForm) || CanOverlap(m_, i)) return 0;
  if (HasTrait(i.opcode, kComposed)) {
    return CostOfRuns(m_, id, cost_.trip_count, [&](CompId c) { return comps_[c.value]; });
  }
  return ComputeSeconds(m_, i, cost_) * kMicroseconds;
}

double OverlapCosts::Transfer(InstrId id) const {
  const Instruction& i = m_.instr(id);
  // Where the groups do not tell their size, they are all devices.
  const int64_t devices = m_.header.replica_count * m_.header.num_partitions;
  const int64_t group = i.attrs->kind == AttrKind::kCollective
                            ? CollectiveGroupSize(m_, i.opcode, i.as<CollectiveAttrs>())
                            : 0;
  const double bytes = BytesSent(m_, i, group > 0 ? group : devices, devices);
  const Links& links = m_.context().Get<Links>();
  return cost_.Seconds(links.Over(CrossingOf(m_, i, devices), bytes)) * kMicroseconds;
}

}  // namespace internal
}  // namespace shardcall
