// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/shapes/instruction_cost.h"

#include <algorithm>

#include "shardcall/partitioner/ir/analysis/trip_count.h"
#include "shardcall/partitioner/ir/shapes/dim_labels.h"

namespace shardcall {
inline namespace internal {
namespace {

// As a double: products of sizes need not fit an int64.
double Elements(const Shape& shape) {
  double n = 1;
  for (int64_t d : shape.dims()) n *= static_cast<double>(std::max<int64_t>(0, d));
  return n;
}

}  // namespace

int64_t TouchedBytes(const Module& m, const Instruction& i) {
  int64_t bytes = 0;
  const auto add = [&](const Shape* shape) {
    const int64_t more = shape->byte_size();
    if (more < 0 || __builtin_add_overflow(bytes, more, &bytes)) bytes = INT64_MAX;
  };
  add(i.shape);
  for (InstrId operand : m.operands(i)) add(m.instr(operand).shape);
  return bytes;
}

double ProductsOf(const Module& m, const Instruction& i) {
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
  return Elements(*i.shape) * inner;
}

double ComputeSeconds(const Module& m, const Instruction& i, const CostModel& cost) {
  if (HasTrait(i.opcode, kFree | kNoWork)) return 0;
  if (HasTrait(i.opcode, kTakesFlops)) return cost.ProductSeconds(ProductsOf(m, i));
  return cost.MemorySeconds(static_cast<double>(TouchedBytes(m, i)));
}

double CostOfRuns(const Module& m, InstrId id, double trip_count,
                  absl::FunctionRef<double(CompId)> of) {
  const Instruction& i = m.instr(id);
  double sum = 0, most = 0;
  for (CompId c : CalledComputations(m, i)) {
    const double run = of(c);
    sum += run;
    most = std::max(most, run);
  }
  if (i.opcode == Opcode::kConditional) return most;
  return RunsOfComputations(m, id, trip_count) * sum;
}

}  // namespace internal
}  // namespace shardcall
