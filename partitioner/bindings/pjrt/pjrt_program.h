// SPDX-License-Identifier: Apache-2.0
// A per-device program, compiled by a PJRT plugin and run on its devices.
#ifndef SHARDCALL_PARTITIONER_BINDINGS_PJRT_PJRT_PROGRAM_H_
#define SHARDCALL_PARTITIONER_BINDINGS_PJRT_PJRT_PROGRAM_H_

#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "kernels/ffi/handler.h"
#include "partitioner/bindings/pjrt/pjrt_client.h"
#include "partitioner/ir/module.h"
#include "partitioner/runtime/tensor.h"

namespace shardcall::pjrt {

class LoadedProgram : public std::enable_shared_from_this<LoadedProgram> {
 public:
  // Compiles the module that each of the client's first `num_devices` devices is to
  // run, as it stands: XLA's own sharding passes are off. Handlers of its calls' targets
  // that `handlers` (null: none) has for the client's platform are registered with the
  // plugin first; a process has one for each target. E334 for what the plugin says, E336
  // for what PJRT cannot be given: tuples among several parameters, types of elements
  // that it does not have.
  static absl::StatusOr<std::shared_ptr<const LoadedProgram>> Compile(
      std::shared_ptr<const Client> client, const Module& local, int num_devices,
      const HandlerRegistry* handlers);
  ~LoadedProgram();
  LoadedProgram(const LoadedProgram&) = delete;
  LoadedProgram& operator=(const LoadedProgram&) = delete;

  // One list of flat leaves per device, in and out. Threads may run at once. E313 for
  // arguments that do not fit; E337 where it takes longer than `deadline`: what runs then
  // is left behind with all that it uses.
  absl::StatusOr<std::vector<std::vector<Tensor>>> Run(std::vector<std::vector<Tensor>> arguments,
                                                       absl::Duration deadline) const;

 private:
  struct Leaf {
    ElementType type;
    Dims dims;
    std::vector<int64_t> minor_to_major;  // empty: the plugin's default
  };
  using ByDevice = std::vector<std::vector<Tensor>>;
  explicit LoadedProgram(std::shared_ptr<const Client> client) : client_(std::move(client)) {}
  absl::Status SetLeaves(const Module& local);
  absl::Status CheckArguments(const ByDevice& arguments) const;
  absl::StatusOr<ByDevice> RunNow(const ByDevice& arguments) const;

  std::shared_ptr<const Client> client_;
  abi::LoadedExecutable* executable_ = nullptr;
  int num_devices_ = 0;
  bool tupled_ = false;  // the one parameter is a tuple
  std::vector<Leaf> parameters_, results_;
};

}  // namespace shardcall::pjrt

#endif  // SHARDCALL_PARTITIONER_BINDINGS_PJRT_PJRT_PROGRAM_H_
