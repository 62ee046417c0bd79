// SPDX-License-Identifier: Apache-2.0
// nccl_allreduce by the communicator of the run, which takes device memory if its backend is NCCL.
// That backend waits for each of its collectives, for the deadline and to report absent ranks.
#include "shardcall/kernels/cuda/nccl_allreduce.h"

#include "absl/strings/str_cat.h"
#include "shardcall/kernels/cuda/library_status.h"
#include "shardcall/kernels/host/all_reduce.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {

absl::Status CudaNcclAllReduce(const HandlerContext& context, absl::Span<const BufferView> operands,
                               absl::Span<const BufferView> results) {
  const CallArguments args(context, operands, results, {"x"}, {"y"});
  SHARDCALL_ASSIGN_OR_RETURN(const AllReduceCall call, CheckAllReduce(context, args));
  const BufferView &x = operands[0], &y = results[0];
  if (call.group.empty()) {
    if (x.data == y.data || x.byte_size() == 0) return absl::OkStatus();
    return args.Located(DeviceStatus(context.device->CopyWithin(y.data, x.data, x.byte_size())));
  }
  Communicator& communicator = *context.communicator;
  if (communicator.stream() == nullptr) {
    return args.Located(
        ToStatus({.code = "E317",
                  .message = absl::StrCat("the communicator of backend ", communicator.backend(),
                                          " takes host memory, and this handler has the device's"),
                  .fix = "Run the program with --backend=nccl"},
                 absl::StatusCode::kUnimplemented));
  }
  // Work on the handler's stream may still write the operand.
  if (communicator.stream() != context.device->stream()) {
    SHARDCALL_RETURN_IF_ERROR(args.Located(DeviceStatus(context.device->Wait(context.deadline))));
  }
  return communicator.AllReduce(call.group, call.kind, x.type, x.data, y.data, x.num_elements(),
                                {context.instruction});
}

}  // namespace internal
}  // namespace shardcall
