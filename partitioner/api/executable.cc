// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/api/executable.h"

#include "shardcall/partitioner/ir/verifier/verifier.h"
#include "shardcall/partitioner/runtime/execute/executor.h"
#include "shardcall/partitioner/runtime/lower/lower.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {

absl::StatusOr<Executable> Compile(Module module, const RunOptions& options) {
  Executable out;
  out.options_ = options;
  SHARDCALL_RETURN_IF_ERROR(VerifyModule(module, "", options.partition.targets));
  const int64_t devices = options.partition.num_partitions == 0 ? module.header.num_partitions
                                                                : options.partition.num_partitions;
  if (devices > 1) {
    SHARDCALL_ASSIGN_OR_RETURN(std::unique_ptr<PartitionedProgram> program,
                               Partition(std::move(module), options.partition));
    out.num_devices_ = static_cast<int>(program->global->program.num_partitions);
    out.partitioned_ = std::move(program);
  }
  SHARDCALL_ASSIGN_OR_RETURN(out.program_, out.partitioned_ == nullptr
                                               ? Lower(module)
                                               : LowerLocal(*out.partitioned_, options));
  SHARDCALL_RETURN_IF_ERROR(CheckHandlers(*out.program_, options.handlers));
  return out;
}

absl::StatusOr<std::vector<Tensor>> Executable::Execute(const std::vector<Tensor>& inputs) const {
  if (program_ == nullptr) {
    return ToStatus({.code = "E311",
                     .message = "the executable has been moved from",
                     .fix = "Execute the one that it was moved to"});
  }
  if (partitioned_ != nullptr) {
    return RunLowered(*partitioned_, program_, inputs, options_);
  }
  DeviceContext device;
  device.handlers = options_.handlers;
  device.deadline = options_.deadline;
  return ExecuteWatched(program_, std::vector<Tensor>(inputs), device);
}

}  // namespace shardcall
