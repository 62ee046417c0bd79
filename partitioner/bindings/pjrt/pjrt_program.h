// SPDX-License-Identifier: Apache-2.0
// A per-device program, compiled by a PJRT plugin and run on its devices.
#ifndef SHARDCALL_PARTITIONER_BINDINGS_PJRT_PJRT_PROGRAM_H_
#define SHARDCALL_PARTITIONER_BINDINGS_PJRT_PJRT_PROGRAM_H_

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "shardcall/kernels/ffi/handler.h"
#include "shardcall/partitioner/bindings/pjrt/pjrt_buffers.h"
#include "shardcall/partitioner/bindings/pjrt/pjrt_client.h"
#include "shardcall/partitioner/bindings/pjrt/program_source.h"
#include "shardcall/partitioner/ir/module.h"
#include "shardcall/partitioner/runtime/tensor.h"

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

  // The same with arrays that lie on the devices and stay there. Of what the program
  // donates, an argument that nobody but `arguments` holds, on any device, is given up;
  // another is copied.
  using Arrays = std::vector<std::vector<DeviceBuffer::Ref>>;
  absl::StatusOr<Arrays> Execute(Arrays arguments, absl::Duration deadline) const;
  // What a device takes as flat leaf k, as its parameter lies there. E313.
  absl::StatusOr<DeviceBuffer::Ref> Put(int device, size_t k, const Tensor& tensor) const;

  const std::shared_ptr<const Client>& client() const { return client_; }
  int num_devices() const { return num_devices_; }
  absl::Span<const ProgramSource::Leaf> parameters() const { return parameters_; }
  absl::Span<const ProgramSource::Leaf> results() const { return results_; }

 private:
  using ByDevice = std::vector<std::vector<Tensor>>;
  explicit LoadedProgram(std::shared_ptr<const Client> client) : client_(std::move(client)) {}
  // Of the tensors, or arrays, of all devices.
  template <typename List>
  absl::Status CheckCounts(const List& arguments) const;
  absl::Status CheckArgument(int device, size_t k, const Tensor& given) const;
  absl::StatusOr<Arrays> ExecuteNow(const Arrays& arguments) const;
  absl::StatusOr<ByDevice> RunNow(const ByDevice& arguments) const;

  std::shared_ptr<const Client> client_;
  abi::LoadedExecutable* executable_ = nullptr;
  int num_devices_ = 0;
  std::vector<ProgramSource::Leaf> parameters_, results_;
};

// Runs `body` on a thread of its own; E337, where it has not returned within `deadline`.
// Then it is left behind, with what it captures.
absl::Status WithinDeadline(absl::Duration deadline, const Plugin& plugin,
                            std::function<void()> body);

}  // namespace shardcall::pjrt

#endif  // SHARDCALL_PARTITIONER_BINDINGS_PJRT_PJRT_PROGRAM_H_
