// SPDX-License-Identifier: Apache-2.0
// A custom-call target of one's own, from a rule string.
//
// "weighted_sum" sums the rows of x with the weights w: out[m] = sum_k x[m,k] w[k].
// The program cuts x along both dimensions, into parts of unequal size (10 rows
// over 4 devices, 7 columns over 2). The rule says that k is summed over, so the
// partitioner lets every device sum its own part and adds an all-reduce behind.
#include <cstdio>

#include "prove.h"

namespace shardcall {
namespace {

constexpr char kProgram[] = R"(
HloModule weighted, num_partitions=8, allow_spmd_sharding_propagation_to_output={true}

ENTRY main {
  x = f32[10,7] parameter(0), sharding={devices=[4,2]<=[8]}
  w = f32[7] parameter(1), sharding={replicated}
  ROOT sums = f32[10] custom-call(x, w), custom_call_target="weighted_sum"
}
)";

// What a device computes, from the part of x and w that it has.
absl::Status WeightedSum(const HandlerContext& context, absl::Span<const BufferView> operands,
                         absl::Span<const BufferView> results) {
  const float* x = static_cast<const float*>(operands[0].data);
  const float* w = static_cast<const float*>(operands[1].data);
  float* out = static_cast<float*>(results[0].data);
  const int64_t rows = operands[0].dims[0], columns = operands[0].dims[1];
  for (int64_t m = 0; m < rows; ++m) {
    out[m] = 0;
    for (int64_t k = 0; k < columns; ++k) out[m] += x[m * columns + k] * w[k];
  }
  return absl::OkStatus();
}

absl::Status Main() {
  TargetRegistry targets;
  SHARDCALL_RETURN_IF_ERROR(targets.RegisterRule(
      "weighted_sum",
      {.rule = "m k, k -> m", .reduction = {{"k", PartialOp::kSum}}, .pad = {{"k", 0}}}));
  HandlerRegistry handlers;
  SHARDCALL_RETURN_IF_ERROR(handlers.Register({.target = "weighted_sum", .host = WeightedSum}));
  return Prove(kProgram, targets, handlers);
}

}  // namespace
}  // namespace shardcall

int main() { return shardcall::Finish(shardcall::Main()); }
