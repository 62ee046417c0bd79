// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/shapes/instruction_cost.h"

#include <algorithm>
#include <numeric>

#include "absl/container/inlined_vector.h"
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

double TouchedOf(Opcode opcode, absl::Span<const double> operands,
                 absl::Span<const double> results) {
  const double written = std::accumulate(results.begin(), results.end(), 0.0);
  const double read = std::accumulate(operands.begin(), operands.end(), 0.0);
  if (operands.empty()) return written;
  if (HasTrait(opcode, kReadsPart)) return read - operands[0] + 2 * written;
  if (HasTrait(opcode, kReplacesPart) && operands.size() > 1) {
    return read - operands[0] + operands[1];
  }
  return read + written;
}

int64_t TouchedBytes(const Module& m, const Instruction& i) {
  const auto bytes_of = [](const Shape& shape) {
    return static_cast<double>(std::max<int64_t>(0, shape.byte_size()));
  };
  absl::InlinedVector<double, 8> operands;
  for (InstrId operand : m.operands(i)) operands.push_back(bytes_of(*m.instr(operand).shape));
  const double result = bytes_of(*i.shape);
  const double touched = TouchedOf(i.opcode, operands, {result});
  return touched < 0x1p62 ? static_cast<int64_t>(touched) : INT64_MAX;
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
