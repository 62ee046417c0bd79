// SPDX-License-Identifier: Apache-2.0
// A custom-call target that decides by itself, in three callbacks.
//
// "reverse" turns x around along one dimension, which stands in the call's
// backend_config. That dimension must be whole on each device; all others may
// stay as they are. No rule string can say that, since the dimension differs
// from call to call.
#include <cstdio>

#include "absl/strings/numbers.h"
#include "prove.h"

namespace shardcall {
namespace {

constexpr char kProgram[] = R"(
HloModule turned, num_partitions=8, allow_spmd_sharding_propagation_to_output={true}

ENTRY main {
  x = f32[8,12] parameter(0), sharding={devices=[4,2]<=[8]}
  rows = f32[8,12] custom-call(x), custom_call_target="reverse", backend_config="0"
  columns = f32[8,12] custom-call(x), custom_call_target="reverse", backend_config="1"
  ROOT both = (f32[8,12], f32[8,12]) tuple(rows, columns)
}
)";

absl::StatusOr<int> ReversedDim(absl::string_view backend_config, int rank) {
  int dim;
  if (absl::SimpleAtoi(backend_config, &dim) && dim >= 0 && dim < rank) return dim;
  return absl::InvalidArgumentError("backend_config is no dimension of the operand");
}

absl::Status Reverse(const HandlerContext& context, absl::Span<const BufferView> operands,
                     absl::Span<const BufferView> results) {
  const BufferView& x = operands[0];
  SHARDCALL_ASSIGN_OR_RETURN(const int dim, ReversedDim(context.backend_config, x.rank()));
  int64_t inner = 1;  // elements between neighbours along `dim`
  for (int d = dim + 1; d < x.rank(); ++d) inner *= x.dims[d];
  for (int64_t i = 0; i < x.num_elements(); ++i) {
    const int64_t at = i / inner % x.dims[dim];
    const int64_t from = i + (x.dims[dim] - 1 - 2 * at) * inner;
    static_cast<float*>(results[0].data)[i] = static_cast<const float*>(x.data)[from];
  }
  return absl::OkStatus();
}

// `sharding` with the reversed dimension whole.
absl::StatusOr<const Sharding*> Whole(const CustomCallView& call, const Sharding* sharding) {
  SHARDCALL_ASSIGN_OR_RETURN(const int dim, ReversedDim(call.backend_config, sharding->rank()));
  ShardingBuilder whole(*sharding);
  whole.dims[dim].clear();
  return whole.Intern(*call.context);
}

PartitionerCallbacks Callbacks() {
  PartitionerCallbacks c;
  c.propagate_user_sharding = [](const CustomCallView& call, int, const Sharding* user) {
    return Whole(call, user);
  };
  c.infer_sharding_from_operands = [](const CustomCallView& call,
                                      absl::Span<const Sharding* const> operands)
      -> absl::StatusOr<std::vector<const Sharding*>> {
    SHARDCALL_ASSIGN_OR_RETURN(const Sharding* result, Whole(call, operands[0]));
    return std::vector<const Sharding*>{result};
  };
  c.partition = [](PartitionContext& context) -> absl::Status {
    const CustomCallView& call = context.call();
    SHARDCALL_ASSIGN_OR_RETURN(const Sharding* sharding, Whole(call, context.result_sharding(0)));
    SHARDCALL_ASSIGN_OR_RETURN(const LocalValue x, context.Operand(0, sharding));
    const Shape* local = LocalShape(*call.context, call.results[0], sharding);
    SHARDCALL_ASSIGN_OR_RETURN(const std::vector<LocalValue> y, context.CallTarget({x}, {local}));
    return context.SetResult(0, y[0], sharding);
  };
  return c;
}

absl::Status Main() {
  TargetRegistry targets;
  SHARDCALL_RETURN_IF_ERROR(targets.RegisterCustomCallPartitioner("reverse", Callbacks()));
  HandlerRegistry handlers;
  SHARDCALL_RETURN_IF_ERROR(handlers.Register({.target = "reverse", .host = Reverse}));
  return Prove(kProgram, targets, handlers);
}

}  // namespace
}  // namespace shardcall

int main() { return shardcall::Finish(shardcall::Main()); }
