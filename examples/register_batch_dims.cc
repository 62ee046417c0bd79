// SPDX-License-Identifier: Apache-2.0
// A custom-call target whose leading dimensions are independent of each other:
// one number says it all.
//
// "running_max" replaces every element by the largest of its row up to there.
// With batch_dims=1 the rows are spread over the devices and nothing moves. The
// program also cuts the columns; these the target needs whole, so each device
// first gets the rest of its rows.
#include <algorithm>
#include <cstdio>

#include "prove.h"

namespace shardcall {
namespace {

constexpr char kProgram[] = R"(
HloModule running, num_partitions=8, allow_spmd_sharding_propagation_to_output={true}

ENTRY main {
  x = f32[12,6] parameter(0), sharding={devices=[8,1]<=[8]}
  rows = f32[12,6] custom-call(x), custom_call_target="running_max"
  y = f32[12,6] parameter(1), sharding={devices=[4,2]<=[8]}
  tiles = f32[12,6] custom-call(y), custom_call_target="running_max"
  ROOT both = (f32[12,6], f32[12,6]) tuple(rows, tiles)
}
)";

absl::Status RunningMax(const HandlerContext& context, absl::Span<const BufferView> operands,
                        absl::Span<const BufferView> results) {
  const float* x = static_cast<const float*>(operands[0].data);
  float* out = static_cast<float*>(results[0].data);
  const int64_t columns = operands[0].dims[1];
  for (int64_t i = 0; i < operands[0].num_elements(); ++i) {
    out[i] = i % columns == 0 ? x[i] : std::max(out[i - 1], x[i]);
  }
  return absl::OkStatus();
}

absl::Status Main() {
  TargetRegistry targets;
  SHARDCALL_RETURN_IF_ERROR(targets.RegisterBatchPartitionable("running_max", /*batch_dims=*/1));
  HandlerRegistry handlers;
  SHARDCALL_RETURN_IF_ERROR(handlers.Register({.target = "running_max", .host = RunningMax}));
  return Prove(kProgram, targets, handlers);
}

}  // namespace
}  // namespace shardcall

int main() { return shardcall::Finish(shardcall::Main()); }
