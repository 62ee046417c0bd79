// SPDX-License-Identifier: Apache-2.0
// A program compiled once and executed many times, on one device or on several
// threads, with everything that can be known before the first run checked.
//
//   SHARDCALL_ASSIGN_OR_RETURN(Executable program, Compile(std::move(module), options));
//   SHARDCALL_ASSIGN_OR_RETURN(std::vector<Tensor> out, program.Execute({x, y}));
#ifndef SHARDCALL_PARTITIONER_API_EXECUTABLE_H_
#define SHARDCALL_PARTITIONER_API_EXECUTABLE_H_

#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "shardcall/partitioner/api/run.h"
#include "shardcall/sharding/base/public.h"

namespace shardcall SHARDCALL_PUBLIC {

class Executable {
 public:
  int num_devices() const { return num_devices_; }
  // Global inputs and outputs, by flat leaf. Errors E313 where the inputs do not fit, and whatever
  // a step reports. Thread-safe.
  absl::StatusOr<std::vector<Tensor>> Execute(const std::vector<Tensor>& inputs) const;
  // Null on one device.
  const PartitionedProgram* partitioned() const { return partitioned_.get(); }

 private:
  friend absl::StatusOr<Executable> Compile(Module module, const RunOptions& options);
  Executable() = default;
  std::shared_ptr<const PartitionedProgram> partitioned_;
  std::shared_ptr<const DeviceProgram> program_;
  RunOptions options_;
  int num_devices_ = 1;
};

// Compiles for the devices that the module or options.partition name, all in this process. Only
// `partition`, `handlers` and `deadline` of the options are used, and the registries must outlive
// the result. Errors: those of the verifier and of Partition, E310 to E312 of lowering, E140 for
// targets without a handler, which lists the registered ones.
absl::StatusOr<Executable> Compile(Module module, const RunOptions& options);

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_API_EXECUTABLE_H_
