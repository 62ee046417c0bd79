// SPDX-License-Identifier: Apache-2.0
// A target whose kernel talks to the other devices by itself:
//
//   own_collective
//   mpirun -np 4 own_collective --backend=mpi
//
// "softmax" is taken over the last dimension, which may be cut. A rule would
// have it gathered. This target's partition callback leaves it cut and writes
// into the local call which devices share a row; the kernel then needs two small
// all-reduces, of the rows' largest elements and of their sums.
#include <algorithm>
#include <cmath>

#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "distributed.h"
#include "shardcall/partitioner/ir/text/parser.h"
#include "shardcall/partitioner/runtime/io/random_inputs.h"

namespace shardcall {
namespace {

constexpr char kProgram[] = R"(
HloModule rows, num_partitions=4, allow_spmd_sharding_propagation_to_output={true}

ENTRY main {
  x = f32[6,32] parameter(0), sharding={devices=[2,2]<=[4]}
  ROOT y = f32[6,32] custom-call(x), custom_call_target="softmax"
}
)";

// "0,1;2,3": the devices that share rows, of which this one is in one group.
std::vector<int> GroupOf(int device, absl::string_view groups) {
  std::vector<int> group;
  for (absl::string_view text : absl::StrSplit(groups, ';', absl::SkipEmpty())) {
    group.clear();
    for (absl::string_view member : absl::StrSplit(text, ',')) {
      int rank = -1;
      if (absl::SimpleAtoi(member, &rank)) group.push_back(rank);
    }
    if (std::find(group.begin(), group.end(), device) != group.end()) return group;
  }
  return {device};
}

absl::Status Softmax(const HandlerContext& context, absl::Span<const BufferView> operands,
                     absl::Span<const BufferView> results) {
  const float* x = static_cast<const float*>(operands[0].data);
  float* y = static_cast<float*>(results[0].data);
  const int64_t rows = operands[0].dims[0], columns = operands[0].dims[1];
  const std::vector<int> group = GroupOf(context.device_ordinal, context.backend_config);
  // The same call on every backend; alone there is nobody to ask.
  const auto over_devices = [&](ReduceKind kind, std::vector<float>* values) {
    if (group.size() == 1) return absl::OkStatus();
    return context.communicator->AllReduce(group, kind, ElementType::kF32, values->data(),
                                           values->data(), rows, {context.instruction});
  };
  std::vector<float> top(rows), sum(rows);
  for (int64_t r = 0; r < rows; ++r) {
    top[r] = *std::max_element(x + r * columns, x + (r + 1) * columns);
  }
  SHARDCALL_RETURN_IF_ERROR(over_devices(ReduceKind::kMax, &top));
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = r * columns; c < (r + 1) * columns; ++c) {
      sum[r] += y[c] = std::exp(x[c] - top[r]);
    }
  }
  SHARDCALL_RETURN_IF_ERROR(over_devices(ReduceKind::kSum, &sum));
  for (int64_t i = 0; i < rows * columns; ++i) y[i] /= sum[i / columns];
  return absl::OkStatus();
}

// The result has the sharding of the operand. Filled-up parts would be summed,
// so a last dimension that does not divide is gathered.
const Sharding* Fitting(const CustomCallView& call, const Sharding* sharding) {
  ShardingBuilder fitting(*sharding);
  const int last = sharding->rank() - 1;
  if (call.operands[0]->dim(last) % AxesSize(fitting.dims[last]) != 0) fitting.dims[last].clear();
  return fitting.Intern(*call.context);
}

PartitionerCallbacks Callbacks() {
  PartitionerCallbacks c;
  c.propagate_user_sharding = [](const CustomCallView& call, int,
                                 const Sharding* user) -> absl::StatusOr<const Sharding*> {
    return Fitting(call, user);
  };
  c.infer_sharding_from_operands = [](const CustomCallView& call,
                                      absl::Span<const Sharding* const> operands)
      -> absl::StatusOr<std::vector<const Sharding*>> {
    return std::vector<const Sharding*>{Fitting(call, operands[0])};
  };
  c.partition = [](PartitionContext& context) -> absl::Status {
    const CustomCallView& call = context.call();
    const Sharding* sharding = Fitting(call, context.result_sharding(0));
    SHARDCALL_ASSIGN_OR_RETURN(const LocalValue x, context.Operand(0, sharding));
    const Shape* local = LocalShape(*call.context, call.results[0], sharding);
    SHARDCALL_ASSIGN_OR_RETURN(const std::vector<LocalValue> y, context.CallTarget({x}, {local}));
    const std::string groups =
        absl::StrJoin(GroupsAsLists(*call.mesh, sharding->dim(sharding->rank() - 1)), ";",
                      [](std::string* out, const std::vector<int64_t>& group) {
                        absl::StrAppend(out, absl::StrJoin(group, ","));
                      });
    Module& local_program = context.builder().module();
    local_program.mutable_instr(y[0].id).backend_config = call.context->arena().Copy(groups);
    return context.SetResult(0, y[0], sharding);
  };
  return c;
}

absl::Status Main(Devices& devices) {
  TargetRegistry targets;
  SHARDCALL_RETURN_IF_ERROR(targets.RegisterCustomCallPartitioner("softmax", Callbacks()));
  HandlerRegistry handlers;
  SHARDCALL_RETURN_IF_ERROR(handlers.Register({.target = "softmax", .host = Softmax}));
  SHARDCALL_ASSIGN_OR_RETURN(Module module,
                             ParseModule(std::make_shared<const std::string>(kProgram),
                                         std::make_shared<Context>(), "own_collective"));
  const std::vector<Tensor> inputs = RandomInputs(ParameterLeaves(module), /*seed=*/1);
  SHARDCALL_ASSIGN_OR_RETURN(const std::vector<Tensor> want, Evaluate(module, inputs, &handlers));
  return RunOn(devices, std::move(module), targets, handlers, inputs, want, 1e-6);
}

}  // namespace
}  // namespace shardcall

int main(int argc, char** argv) {
  return shardcall::OnDevices(argc > 1 ? argv[1] : "", shardcall::Main);
}
