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
#include "partitioner/bindings/pjrt/program_source.h"
#include "partitioner/ir/module.h"
#include "partitioner/runtime/tensor.h"

namespace shardcall::pjrt {

class LoadedProgram : public std::enable_shared_from_this<LoadedProgram> {
 public:
  // Compiles what each of the client's first `num_devices` devices is to run; see
  // MakeProgramSource for handlers, and errors beside E334, what the plugin says.
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
  using ByDevice = std::vector<std::vector<Tensor>>;
  explicit LoadedProgram(std::shared_ptr<const Client> client) : client_(std::move(client)) {}
  absl::Status CheckArguments(const ByDevice& arguments) const;
  absl::StatusOr<ByDevice> RunNow(const ByDevice& arguments) const;

  std::shared_ptr<const Client> client_;
  abi::LoadedExecutable* executable_ = nullptr;
  int num_devices_ = 0;
  std::vector<ProgramSource::Leaf> parameters_, results_;
};

}  // namespace shardcall::pjrt

#endif  // SHARDCALL_PARTITIONER_BINDINGS_PJRT_PJRT_PROGRAM_H_
