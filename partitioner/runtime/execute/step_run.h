// SPDX-License-Identifier: Apache-2.0
// The interface of op functions to a running step: its operands, its results, and the device.
#ifndef SHARDCALL_PARTITIONER_RUNTIME_EXECUTE_STEP_RUN_H_
#define SHARDCALL_PARTITIONER_RUNTIME_EXECUTE_STEP_RUN_H_

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "shardcall/collectives/communicator.h"
#include "shardcall/kernels/ffi/handler.h"
#include "shardcall/partitioner/runtime/program.h"
#include "shardcall/partitioner/runtime/tensor.h"
#include "shardcall/sharding/mesh.h"

namespace shardcall {
inline namespace internal {

class StartedCalls;

// The accelerator of a device, opened when a handler first needs it.
struct LazyHandlerDevice {
  std::shared_ptr<HandlerDevice> device;
};

// The random state of `rng` and `rng-get-and-update-state` on one device.
struct RngState {
  struct Stream {
    uint64_t calls = 0;
    unsigned __int128 state = 0x7012395;
  };
  std::map<int, Stream> streams;  // by device
  int drawn_on = -1;              // whose stream this device draws from; -1: its own
};

// What a device is doing, as another thread sees it. Both point into the running program.
struct RunningSteps {
  std::atomic<const Step*> of_entry{nullptr};   // of the entry computation
  std::atomic<const Step*> innermost{nullptr};  // of a computation that it calls, or the same
};

// "%sine.3 of %while.7 on device 0"; empty before its first step.
std::string PlaceOf(const RunningSteps& running, int device);

// The device that executes a program.
struct DeviceContext {
  int device = 0;  // partition id
  int num_devices = 1;
  Communicator* comm = nullptr;                  // null: one device, no collectives
  const BaseMesh* mesh = nullptr;                // for handlers; null: none
  const HandlerRegistry* handlers = nullptr;     // null: no custom calls
  const std::atomic<bool>* cancelled = nullptr;  // set when the run has failed elsewhere
  absl::Duration deadline = absl::Seconds(60);   // for futures of handlers
  int64_t run_id = 0;                            // one for all devices of a run; 0: none yet
  RngState* rng = nullptr;                       // of one execution; Execute makes it
  LazyHandlerDevice* accelerator = nullptr;      // likewise
  // Asynchronous collectives; null: Execute makes one whose starts run immediately.
  StartedCalls* started = nullptr;
  // Where Execute stores the name of the running instruction; null: nowhere.
  std::atomic<const std::string*>* at = nullptr;
  RunningSteps* running = nullptr;  // null: nowhere
};

// OK, or why the device's run is not to go on: it has failed elsewhere, was stopped (E346), or the
// process ends (E346).
absl::Status GoesOn(const DeviceContext& device);

class StepRun {
 public:
  StepRun(const DeviceProgram& program, const DeviceContext& device, const Step& step,
          std::vector<Tensor>& slots)
      : program_(program), device_(device), step_(step), slots_(slots) {}

  const Step& step() const { return step_; }
  const DeviceContext& device() const { return device_; }
  const DeviceProgram& program() const { return program_; }
  template <typename T>
  const T& data() const {
    return static_cast<const T&>(*step_.data);
  }

  int num_inputs() const { return static_cast<int>(step_.operands.size()); }
  const Tensor& in(int i) const { return slots_[step_.operands[i].slot]; }
  // Operand i, moved out if this is its last use; in(i) is then empty.
  Tensor Take(int i) {
    Tensor& slot = slots_[step_.operands[i].slot];
    return step_.operands[i].last ? std::move(slot) : slot;
  }

  int num_results() const { return static_cast<int>(step_.results.size()); }
  const LeafShape& shape(int r) const { return step_.shapes[r]; }
  Tensor NewResult(int r) const { return Tensor(step_.shapes[r].type, step_.shapes[r].dims); }
  // Sets result r. The tensor takes the result's dims; its bytes must fit.
  void Set(int r, Tensor t);
  // Sets a tensor that may be smaller than the result's shape (dynamic shapes).
  void SetSized(int r, Tensor t) { slots_[step_.results[r]] = std::move(t); }
  // A buffer for result r: that of an operand of the same element width whose last use this is,
  // else a new one. Such an operand can then be read only through `in_data`.
  Tensor ReuseOrNew(int r, absl::Span<const int> candidates);

  // Runs a computation of the program on this device.
  absl::StatusOr<std::vector<Tensor>> Call(int computation, std::vector<Tensor> arguments);

  // An error with code, naming the instruction and its opcode.
  absl::Status Error(absl::string_view code, absl::string_view message,
                     absl::StatusCode status = absl::StatusCode::kInvalidArgument,
                     absl::string_view fix = "") const;

 private:
  const DeviceProgram& program_;
  const DeviceContext& device_;
  const Step& step_;
  std::vector<Tensor>& slots_;
};

// Runs computation `index`; the arguments are its parameters by flat leaf.
absl::StatusOr<std::vector<Tensor>> RunComputation(const DeviceProgram& program,
                                                   const DeviceContext& device, int index,
                                                   std::vector<Tensor> arguments);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_RUNTIME_EXECUTE_STEP_RUN_H_
