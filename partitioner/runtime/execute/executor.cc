// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/runtime/execute/executor.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "shardcall/collectives/in_process/in_process.h"
#include "shardcall/partitioner/runtime/execute/active_runs.h"
#include "shardcall/partitioner/runtime/execute/started_calls.h"
#include "shardcall/partitioner/runtime/execute/step_observer.h"
#include "shardcall/partitioner/runtime/execute/watched_threads.h"
#include "shardcall/partitioner/runtime/out_of_memory.h"
#include "shardcall/sharding/base/status.h"
#include "shardcall/sharding/base/stop.h"

namespace shardcall {
inline namespace internal {

void StepRun::Set(int r, Tensor t) {
  const LeafShape& shape = step_.shapes[r];
  if (step_.sized) return SetSized(r, std::move(t));
  if (t.dims() != shape.dims || t.type() != shape.type) {
    t = std::move(t).As(shape.type, shape.dims);
  }
  slots_[step_.results[r]] = std::move(t);
}

Tensor StepRun::ReuseOrNew(int r, absl::Span<const int> candidates) {
  const LeafShape& shape = step_.shapes[r];
  for (int i : candidates) {
    const OperandRef& ref = step_.operands[i];
    const Tensor& t = slots_[ref.slot];
    if (ref.last && t.unique() && t.element_bytes() == ElementTypeBytes(shape.type) &&
        t.num_elements() == shape.num_elements()) {
      return std::move(slots_[ref.slot]).As(shape.type, shape.dims);
    }
  }
  return NewResult(r);
}

absl::StatusOr<std::vector<Tensor>> StepRun::Call(int computation, std::vector<Tensor> arguments) {
  return RunComputation(program_, device_, computation, std::move(arguments));
}

absl::Status StepRun::Error(absl::string_view code, absl::string_view message,
                            absl::StatusCode status, absl::string_view fix) const {
  return ToStatus({.code = std::string(code),
                   .message = absl::StrCat(OpcodeText(step_.opcode), ": ", message),
                   .where = absl::StrCat("%", step_.name),
                   .fix = std::string(fix)},
                  status);
}

namespace {

absl::Status RunObserved(StepObserver& observer, StepRun& run, std::vector<Tensor>& slots) {
  const Step& step = run.step();
  SHARDCALL_RETURN_IF_ERROR(observer.Before(run, slots));
  {
    const StepObserver::Scope scope(observer.Enters(step) ? &observer : nullptr);
    SHARDCALL_RETURN_IF_ERROR(step.fn(run));
  }
  observer.After(step, slots);
  return absl::OkStatus();
}

// Says to other threads where the device is.
void Note(const DeviceContext& device, const Step& step, bool of_entry) {
  if (device.at != nullptr) device.at->store(&step.name, std::memory_order_relaxed);
  if (device.running == nullptr) return;
  device.running->innermost.store(&step, std::memory_order_relaxed);
  if (of_entry) device.running->of_entry.store(&step, std::memory_order_relaxed);
}

}  // namespace

std::string PlaceOf(const RunningSteps& running, int device) {
  const Step* const inner = running.innermost.load(std::memory_order_relaxed);
  const Step* const entry = running.of_entry.load(std::memory_order_relaxed);
  if (inner == nullptr) return "";
  std::string out = absl::StrCat("%", inner->name);
  if (entry != nullptr && entry != inner) absl::StrAppend(&out, " of %", entry->name);
  return absl::StrCat(out, " on device ", device);
}

absl::Status GoesOn(const DeviceContext& device) {
  if (device.cancelled != nullptr && device.cancelled->load(std::memory_order_relaxed)) {
    return absl::AbortedError("stopped, as the run has failed elsewhere");
  }
  return CheckStop();
}

absl::StatusOr<std::vector<Tensor>> RunComputation(const DeviceProgram& program,
                                                   const DeviceContext& device, int index,
                                                   std::vector<Tensor> arguments) {
  const ProgramComputation& comp = program.computations[index];
  SHARDCALL_CHECK(arguments.size() == comp.parameters.size());
  std::vector<Tensor> slots(comp.num_slots);
  for (size_t k = 0; k < arguments.size(); ++k) {
    if (comp.parameters[k] >= 0) slots[comp.parameters[k]] = std::move(arguments[k]);
  }
  arguments.clear();  // unread arguments are freed now
  for (const auto& [slot, value] : comp.constants) slots[slot] = value;
  SHARDCALL_RETURN_IF_ERROR(GoesOn(device));  // it may have no steps, and be called without an end
  StepObserver* const observer = StepObserver::OfThisThread();
  for (const Step& step : comp.steps) {
    StepRun run(program, device, step, slots);
    Note(device, step, index == program.entry);
    SHARDCALL_RETURN_IF_ERROR(GoesOn(device));
    if (observer == nullptr) {
      SHARDCALL_RETURN_IF_ERROR(step.fn(run));
    } else {
      SHARDCALL_RETURN_IF_ERROR(RunObserved(*observer, run, slots));
    }
    for (const OperandRef& ref : step.operands) {
      if (ref.last) slots[ref.slot] = Tensor();
    }
    for (int32_t slot : step.unread) slots[slot] = Tensor();
  }
  std::vector<Tensor> results;
  results.reserve(comp.root.size());
  for (const OperandRef& ref : comp.root) {
    results.push_back(ref.last ? std::move(slots[ref.slot]) : slots[ref.slot]);
  }
  return results;
}

namespace {

// OK, or E140. It runs at every execution, so messages are made for errors only.
absl::Status CheckHandler(const DeviceProgram::TargetUse& use, const HandlerRegistry& handlers) {
  const auto found = handlers.FindForRun(use.target, use.backend_config);
  absl::Status device;
  if (found.ok()) {
    if ((*found)->platform == "Host") return absl::OkStatus();
    device = handlers.OpenDevice((*found)->platform, 0, nullptr).status();
    if (device.ok()) return device;
  }
  const absl::Status host =
      handlers.Find(use.target, "Host", use.backend_config, absl::StrCat("%", use.instruction))
          .status();
  if (device.ok()) return host;
  return absl::Status(device.code(), absl::StrCat(host.message(), "\n  ", device.message()));
}

}  // namespace

absl::Status CheckHandlers(const DeviceProgram& program, const HandlerRegistry* handlers) {
  const HandlerRegistry none;
  absl::flat_hash_set<absl::string_view> said;  // targets reported; one call per target is enough
  std::vector<std::string> messages;
  absl::StatusCode code = absl::StatusCode::kOk;
  for (const DeviceProgram::TargetUse& use : program.targets) {
    if (said.contains(use.target)) continue;
    const absl::Status status = CheckHandler(use, handlers == nullptr ? none : *handlers);
    if (status.ok()) continue;
    said.insert(use.target);
    // kUnavailable (missing on this machine only) is the code only if all errors have it.
    if (code == absl::StatusCode::kOk || code == absl::StatusCode::kUnavailable) {
      code = handlers == nullptr ? absl::StatusCode::kNotFound : status.code();
    }
    messages.emplace_back(status.message());
  }
  return absl::Status(code, absl::StrJoin(messages, "\n"));
}

namespace {

// Whether the tensor has the parameter's shape, or a smaller one in dynamic dimensions, and has not
// been moved from.
bool Fits(const Tensor& t, const LeafShape& shape) {
  if (t.data() == nullptr && t.byte_size() > 0) return false;
  if (t.type() != shape.type || t.dims().size() != shape.dims.size()) return false;
  for (size_t d = 0; d < shape.dims.size(); ++d) {
    if (t.dims()[d] != shape.dims[d] && !(shape.IsDynamicDim(d) && t.dims()[d] < shape.dims[d])) {
      return false;
    }
  }
  return true;
}

absl::Status CheckArguments(const DeviceProgram& program, absl::Span<const Tensor> arguments,
                            const DeviceContext& device) {
  if (arguments.size() != program.parameters.size()) {
    return ToStatus({.code = "E313",
                     .message = "wrong number of arguments",
                     .where = program.name,
                     .expected = absl::StrCat(program.parameters.size()),
                     .found = absl::StrCat(arguments.size()),
                     .fix = "Pass one array for each flat leaf of the parameters"});
  }
  for (size_t k = 0; k < arguments.size(); ++k) {
    const LeafShape& shape = program.parameters[k];
    if (!Fits(arguments[k], shape)) {
      return ToStatus({.code = "E313",
                       .message = absl::StrCat("argument ", k, " does not fit its parameter"),
                       .where = program.name,
                       .expected = TypeAndDims(shape.type, shape.dims),
                       .found = TypeAndDims(arguments[k]),
                       .fix = "Pass an array of the type and the dimensions of the parameter"});
    }
  }
  return CheckHandlers(program, device.handlers);
}

// A number for each run in this process, from 1 on.
int64_t NextRunId() {
  static std::atomic<int64_t> last{0};
  return ++last;
}

// Records the first error of a run, and stops the others.
class FirstError {
 public:
  void Report(const absl::Status& status, absl::Span<const std::unique_ptr<Communicator>> comms) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!status_.ok()) return;
    status_ = status;
    cancelled_ = true;
    if (!comms.empty()) comms[0]->Abort(status);
  }
  const std::atomic<bool>* cancelled() const { return &cancelled_; }
  const absl::Status& status() const { return status_; }

 private:
  std::mutex mutex_;
  absl::Status status_;
  std::atomic<bool> cancelled_{false};
};

}  // namespace

absl::StatusOr<std::vector<Tensor>> Execute(const DeviceProgram& program,
                                            absl::Span<const Tensor> arguments,
                                            const DeviceContext& device) {
  return Execute(program, std::vector<Tensor>(arguments.begin(), arguments.end()), device);
}

absl::StatusOr<std::vector<Tensor>> Execute(const DeviceProgram& program,
                                            std::vector<Tensor>&& arguments,
                                            const DeviceContext& device) {
  SHARDCALL_RETURN_IF_ERROR(CheckArguments(program, arguments, device));
  RngState rng;
  DeviceContext own = device;
  // A run of its own; else it is a device of one.
  std::atomic<bool> cancelled{false};
  std::optional<ActiveRun> active;
  RunningSteps running;
  if (own.cancelled == nullptr) {
    own.running = &running;
    own.cancelled = &cancelled;
    active.emplace([&](const absl::Status&) { cancelled = true; });
    SHARDCALL_RETURN_IF_ERROR(active->status());
  }
  own.rng = &rng;
  LazyHandlerDevice accelerator;
  own.accelerator = &accelerator;
  StartedCalls at_once(device.comm, /*meanwhile=*/false);
  if (own.started == nullptr) own.started = &at_once;
  if (own.run_id == 0) own.run_id = NextRunId();
  const absl::Cleanup left = [&] {
    if (own.at != nullptr) own.at->store(nullptr, std::memory_order_relaxed);
  };
  absl::StatusOr<std::vector<Tensor>> results = WithinMemory(program.name, [&] {
    return RunComputation(program, own, program.entry, std::move(arguments));
  });
  if (results.ok() || !active.has_value()) return results;
  SHARDCALL_RETURN_IF_ERROR(active->status());
  const absl::Status stopped = CheckStop();
  return stopped.ok() ? results.status() : In(stopped, PlaceOf(running, own.device));
}

absl::StatusOr<std::vector<Tensor>> ExecuteWatched(
    std::shared_ptr<const DeviceProgram> program, std::vector<Tensor>&& arguments,
    const DeviceContext& device, std::shared_ptr<const void> used,
    absl::FunctionRef<void(const absl::Status&)> stop) {
  if (!NeedsWatch(*program)) return Execute(*program, std::move(arguments), device);
  struct State {
    std::shared_ptr<const DeviceProgram> program;
    std::vector<Tensor> arguments;
    std::shared_ptr<const void> used;
    std::optional<BaseMesh> mesh;
    DeviceContext device;
    std::atomic<bool> cancelled{false};
    absl::StatusOr<std::vector<Tensor>> result;
  };
  auto state = std::make_shared<State>();
  state->program = std::move(program);
  state->arguments = std::move(arguments);
  state->used = std::move(used);
  state->device = device;
  state->device.cancelled = &state->cancelled;
  if (device.mesh != nullptr) state->device.mesh = &state->mesh.emplace(*device.mesh);
  const absl::Status failure = RunWatched(
      state->program->name, 1, device.deadline,
      [state](int, RunningSteps* running) {
        state->device.running = running;
        state->result = WithinMemory(state->program->name, [&] {
          return Execute(*state->program, std::move(state->arguments), state->device);
        });
      },
      [&](const absl::Status& status) {
        state->cancelled = true;
        stop(status);
      });
  if (!failure.ok()) return failure;
  return std::move(state->result);
}

namespace {

// All objects that the devices of one run share. Members are declared so that each is destroyed
// before those that it uses.
class ThreadsRun {
 public:
  ThreadsRun(std::shared_ptr<const DeviceProgram> program,
             std::vector<std::vector<Tensor>> arguments, int num_devices,
             const HandlerRegistry* handlers, absl::Duration deadline, const BaseMesh* mesh)
      : program_(std::move(program)),
        arguments_(std::move(arguments)),
        num_devices_(num_devices),
        handlers_(handlers),
        deadline_(deadline),
        world_(num_devices, deadline),
        results_(num_devices) {
    if (mesh != nullptr) mesh_ = *mesh;
    for (int d = 0; d < num_devices; ++d) comms_.push_back(world_.Rank(d));
    for (int d = 0; d < num_devices; ++d) {
      started_.push_back(std::make_unique<StartedCalls>(comms_[d].get(), program_->has_starts));
    }
  }

  void RunDevice(int d, RunningSteps* running) {
    DeviceContext device;
    device.device = d;
    device.num_devices = num_devices_;
    device.comm = started_[d]->comm();
    device.started = started_[d].get();
    device.mesh = mesh_.has_value() ? &*mesh_ : nullptr;
    device.handlers = handlers_;
    device.cancelled = error_.cancelled();
    device.running = running;
    device.deadline = deadline_;
    device.run_id = run_id_;
    absl::StatusOr<std::vector<Tensor>> result = WithinMemory(program_->name, [&] {
      std::vector<Tensor> mine = arguments_.size() == 1 ? arguments_[0] : std::move(arguments_[d]);
      return Execute(*program_, std::move(mine), device);
    });
    if (result.ok()) {
      results_[d] = *std::move(result);
    } else {
      Stop(result.status());
    }
  }

  void Stop(const absl::Status& status) { error_.Report(status, comms_); }
  const DeviceProgram& program() const { return *program_; }

  // To be called when all devices are done.
  absl::StatusOr<std::vector<std::vector<Tensor>>> Results() {
    if (!error_.status().ok()) return error_.status();
    return std::move(results_);
  }

 private:
  const std::shared_ptr<const DeviceProgram> program_;
  std::vector<std::vector<Tensor>> arguments_;
  const int num_devices_;
  const HandlerRegistry* const handlers_;
  const absl::Duration deadline_;
  std::optional<BaseMesh> mesh_;  // a copy, since a device may outlive the caller's
  InProcessWorld world_;
  std::vector<std::unique_ptr<Communicator>> comms_;
  // Kept for the whole run, since a reported error must be able to abort calls that still run.
  std::vector<std::unique_ptr<StartedCalls>> started_;
  std::vector<std::vector<Tensor>> results_;
  FirstError error_;
  const int64_t run_id_ = NextRunId();
};

}  // namespace

absl::StatusOr<std::vector<std::vector<Tensor>>> RunOnThreads(
    std::shared_ptr<const DeviceProgram> program, std::vector<std::vector<Tensor>> arguments,
    int num_devices, const HandlerRegistry* handlers, absl::Duration deadline,
    const BaseMesh* mesh) {
  if (num_devices < 1 || (arguments.size() != 1 && arguments.size() != num_devices)) {
    return ToStatus({.code = "E313",
                     .message = "arguments are needed for every device, or one list for all",
                     .where = program->name,
                     .expected = absl::StrCat(num_devices),
                     .found = absl::StrCat(arguments.size()),
                     .fix = "Pass one list, or as many as there are devices"});
  }
  const auto run = std::make_shared<ThreadsRun>(std::move(program), std::move(arguments),
                                                num_devices, handlers, deadline, mesh);
  SHARDCALL_RETURN_IF_ERROR(RunWatched(
      run->program().name, num_devices, deadline,
      [run](int d, RunningSteps* running) { run->RunDevice(d, running); },
      [&](const absl::Status& status) { run->Stop(status); }));
  return run->Results();
}

absl::StatusOr<std::vector<std::vector<Tensor>>> RunOnThreads(
    const DeviceProgram& program, std::vector<std::vector<Tensor>> arguments, int num_devices,
    const HandlerRegistry* handlers, absl::Duration deadline, const BaseMesh* mesh) {
  return RunOnThreads(std::shared_ptr<const DeviceProgram>(&program, [](const DeviceProgram*) {}),
                      std::move(arguments), num_devices, handlers, deadline, mesh);
}

}  // namespace internal
}  // namespace shardcall
