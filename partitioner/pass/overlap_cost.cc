// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/pass/overlap_cost.h"

#include <algorithm>

#include "shardcall/partitioner/ir/analysis/trip_count.h"
#include "shardcall/partitioner/ir/shapes/collective_bytes.h"
#include "shardcall/partitioner/ir/shapes/dim_labels.h"
#include "shardcall/partitioner/ir/shapes/shape_inference.h"

namespace shardcall::inline internal {
namespace {

constexpr double kMicroseconds = 1e6;

// As a double: products of sizes need not fit an int64.
double Elements(const Shape& shape) {
  double n = 1;
  for (int64_t d : shape.dims()) n *= static_cast<double>(std::max<int64_t>(0, d));
  return n;
}

double Flops(const Module& m, const Instruction& i) {
  const Shape& lhs = *m.instr(m.operands(i)[0]).shape;
  const Shape& rhs = *m.instr(m.operands(i)[1]).shape;
  double inner = 1;
  if (i.opcode == Opcode::kConvolution) {
    inner = Elements(rhs);
    DimLabels labels;
    if (ParseDimLabels(i.as<ConvolutionAttrs>().dim_labels, &labels)) {
      const int d = labels.rhs.feature;
      if (d < rhs.rank() && rhs.dim(d) > 0) inner /= static_cast<double>(rhs.dim(d));
    }
  } else {
    for (int64_t d : i.as<DotAttrs>().lhs_contracting) inner *= static_cast<double>(lhs.dim(d));
  }
  return 2 * Elements(*i.shape) * inner;
}

}  // namespace

int64_t TouchedBytes(const Module& m, const Instruction& i) {
  int64_t bytes = 0;
  auto add = [&](const Shape* shape) {
    const int64_t more = shape->byte_size();
    if (more < 0 || __builtin_add_overflow(bytes, more, &bytes)) bytes = INT64_MAX;
  };
  add(i.shape);
  for (InstrId operand : m.operands(i)) add(m.instr(operand).shape);
  return bytes;
}

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
  if (HasTrait(i.opcode, kFree | kNoWork | kAsyncForm) || CanOverlap(m_, i)) return 0;
  if (HasTrait(i.opcode, kTakesFlops)) return Flops(m_, i) / cost_.flop_rate * kMicroseconds;
  if (HasTrait(i.opcode, kControlFlow) || i.opcode == Opcode::kFusion) {
    double sum = 0, most = 0;
    for (CompId c : CalledComputations(m_, i)) {
      sum += comps_[c.value];
      most = std::max(most, comps_[c.value]);
    }
    if (i.opcode == Opcode::kConditional) return most;  // one branch runs
    return i.opcode == Opcode::kWhile ? TripCountOr(m_, id, cost_.trip_count) * sum : sum;
  }
  return static_cast<double>(TouchedBytes(m_, i)) / cost_.memory_rate * kMicroseconds;
}

double OverlapCosts::Transfer(InstrId id) const {
  const Instruction& i = m_.instr(id);
  // Where the groups do not tell their size, they are all devices.
  const int64_t devices = m_.header.replica_count * m_.header.num_partitions;
  const int64_t group = i.attrs->kind == AttrKind::kCollective
                            ? CollectiveGroupSize(m_, i.opcode, i.as<CollectiveAttrs>())
                            : 0;
  const double bytes = BytesSent(m_, i, group > 0 ? group : devices, devices);
  return cost_.Seconds(bytes) * kMicroseconds;
}

}  // namespace shardcall::inline internal
