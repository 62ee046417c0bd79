// SPDX-License-Identifier: Apache-2.0
// A per-device program, compiled by a PJRT plugin, that runs on its devices.
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

namespace shardcall {
inline namespace internal {
namespace pjrt {

class LoadedProgram : public std::enable_shared_from_this<LoadedProgram> {
 public:
  // Compiles the program for each of the client's first `num_devices` devices. See
  // MakeProgramSource for handlers and for errors other than E334, the plugin's.
  static absl::StatusOr<std::shared_ptr<const LoadedProgram>> Compile(
      std::shared_ptr<const Client> client, const Module& local, int num_devices,
      const HandlerRegistry* handlers);
  ~LoadedProgram();
  LoadedProgram(const LoadedProgram&) = delete;
  LoadedProgram& operator=(const LoadedProgram&) = delete;

  // One list of flat leaves per device, in and out. Thread-safe. E313 for arguments that do not
  // fit; E337 if it takes longer than `deadline`: the execution is then abandoned with everything
  // it uses.
  absl::StatusOr<std::vector<std::vector<Tensor>>> Run(std::vector<std::vector<Tensor>> arguments,
                                                       absl::Duration deadline) const;

  // The same with arrays that are on the devices and stay there. A donated argument is consumed if
  // `arguments` is its only owner on every device, and copied otherwise.
  using Arrays = std::vector<std::vector<DeviceBuffer::Ref>>;
  absl::StatusOr<Arrays> Execute(Arrays arguments, absl::Duration deadline) const;
  // Puts a tensor on a device as flat leaf k, with the layout of the parameter. E313.
  absl::StatusOr<DeviceBuffer::Ref> Put(int device, size_t k, const Tensor& tensor) const;

  const std::shared_ptr<const Client>& client() const { return client_; }
  int num_devices() const { return num_devices_; }
  absl::Span<const ProgramSource::Leaf> parameters() const { return parameters_; }
  absl::Span<const ProgramSource::Leaf> results() const { return results_; }

 private:
  using ByDevice = std::vector<std::vector<Tensor>>;
  explicit LoadedProgram(std::shared_ptr<const Client> client) : client_(std::move(client)) {}
  // Checks the numbers of tensors, or arrays, of all devices.
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

// Runs `body` on its own thread. If it has not returned within `deadline`, the result is E337, and
// the thread is abandoned with the captures of `body`.
absl::Status WithinDeadline(absl::Duration deadline, const Plugin& plugin,
                            std::function<void()> body);

}  // namespace pjrt
}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_BINDINGS_PJRT_PJRT_PROGRAM_H_
