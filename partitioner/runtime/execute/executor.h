// SPDX-License-Identifier: Apache-2.0
// Runs a DeviceProgram: on the calling thread as one device, or on N threads that communicate
// through an in-process world. All decisions are in the program.
#ifndef SHARDCALL_PARTITIONER_RUNTIME_EXECUTE_EXECUTOR_H_
#define SHARDCALL_PARTITIONER_RUNTIME_EXECUTE_EXECUTOR_H_

#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "shardcall/partitioner/runtime/execute/step_run.h"
#include "shardcall/partitioner/runtime/program.h"
#include "shardcall/partitioner/runtime/tensor.h"

namespace shardcall {
inline namespace internal {

// E140 for every target of the program's calls that has no handler, each listed once.
absl::Status CheckHandlers(const DeviceProgram& program, const HandlerRegistry* handlers);

// Arguments and results by flat leaf. Errors: E313 for arguments that do not match the program's
// parameters, E140 for a target without a handler, E314 for lack of memory; and errors of steps.
absl::StatusOr<std::vector<Tensor>> Execute(const DeviceProgram& program,
                                            absl::Span<const Tensor> arguments,
                                            const DeviceContext& device);
// Takes ownership of the arguments, so that their buffers can be reused.
absl::StatusOr<std::vector<Tensor>> Execute(const DeviceProgram& program,
                                            std::vector<Tensor>&& arguments,
                                            const DeviceContext& device);

// The same, on a separate thread if the program calls handlers: one that does not return within
// the device's deadline is E319, and `stop` is called. `used` owns what the device uses beside the
// program, and lives as long as the handler runs. The registry need not live that long.
absl::StatusOr<std::vector<Tensor>> ExecuteWatched(
    std::shared_ptr<const DeviceProgram> program, std::vector<Tensor>&& arguments,
    const DeviceContext& device, std::shared_ptr<const void> used = nullptr,
    absl::FunctionRef<void(const absl::Status&)> stop = [](const absl::Status&) {});

// Runs all devices, one thread each. arguments[d] are those of device d (or one list for all). A
// device that fails aborts the others; the returned error is the first that was not caused by an
// abort. No collective waits longer than `deadline`, and no handler takes longer (E319): see
// RunWatched. `mesh` is passed to handlers; null: none.
absl::StatusOr<std::vector<std::vector<Tensor>>> RunOnThreads(
    const DeviceProgram& program, std::vector<std::vector<Tensor>> arguments, int num_devices,
    const HandlerRegistry* handlers, absl::Duration deadline, const BaseMesh* mesh = nullptr);
absl::StatusOr<std::vector<std::vector<Tensor>>> RunOnThreads(
    std::shared_ptr<const DeviceProgram> program, std::vector<std::vector<Tensor>> arguments,
    int num_devices, const HandlerRegistry* handlers, absl::Duration deadline,
    const BaseMesh* mesh = nullptr);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_RUNTIME_EXECUTE_EXECUTOR_H_
