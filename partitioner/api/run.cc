// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/api/run.h"

#include <atomic>

#include "absl/strings/str_cat.h"
#include "shardcall/collectives/call.h"
#include "shardcall/collectives/mpi/mpi.h"
#include "shardcall/collectives/nccl/nccl.h"
#include "shardcall/collectives/program_check.h"
#include "shardcall/partitioner/api/rank_identity.h"
#include "shardcall/partitioner/ir/known_targets.h"
#include "shardcall/partitioner/ir/verifier/verifier.h"
#include "shardcall/partitioner/pass/pass.h"
#include "shardcall/partitioner/runtime/execute/executor.h"
#include "shardcall/partitioner/runtime/execute/started_calls.h"
#include "shardcall/partitioner/runtime/io/shard_io.h"
#include "shardcall/partitioner/runtime/lower/device_groups.h"
#include "shardcall/partitioner/runtime/lower/lower.h"
#include "shardcall/partitioner/runtime/out_of_memory.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
namespace {

// All-gathers the outputs of every rank.
absl::StatusOr<std::vector<std::vector<Tensor>>> ExchangeOutputs(std::vector<Tensor> mine,
                                                                 Communicator& comm) {
  const std::vector<int> everyone = EveryRank(comm);
  std::vector<std::vector<Tensor>> all(comm.size());
  for (Tensor& t : mine) {
    if (!IsArrayType(t.type())) {
      for (auto& device : all) device.push_back(Tensor::Token());
      continue;
    }
    const int64_t bytes = t.byte_size();
    std::vector<char> buffer(static_cast<size_t>(bytes) * comm.size());
    SHARDCALL_RETURN_IF_ERROR(
        comm.AllGather(everyone, t.data(), buffer.data(), bytes, {"outputs of the program"}));
    for (int r = 0; r < comm.size(); ++r) {
      all[r].push_back(Tensor::FromBytes(t.type(), t.dims(), buffer.data() + r * bytes));
    }
  }
  return all;
}

}  // namespace

absl::StatusOr<Backend> BackendFromName(absl::string_view name) {
  if (name == "inprocess") return Backend::kInProcess;
  if (name == "mpi") return Backend::kMpi;
  if (name == "nccl") return Backend::kNccl;
  if (name == "pjrt") return Backend::kPjrt;
  Diagnostic d;
  d.code = "E330";
  d.message = "there is no such backend";
  d.expected = "inprocess, mpi, nccl or pjrt";
  d.found = std::string(name);
  d.fix = "leave --backend out to run on threads of this process";
  return ToStatus(d);
}

bool HasManualRegion(const Module& module) {
  for (int i = 0; i < module.num_instructions(); ++i) {
    const Instruction& instr = module.instr(InstrId(i));
    if (HasTrait(KnownTargetOf(instr), kEntersManual)) return true;
  }
  return false;
}

absl::StatusOr<std::vector<Tensor>> Evaluate(const Module& module, std::vector<Tensor> inputs,
                                             const HandlerRegistry* handlers) {
  return WithinMemory("", [&]() -> absl::StatusOr<std::vector<Tensor>> {
    SHARDCALL_ASSIGN_OR_RETURN(std::shared_ptr<const DeviceProgram> program, Lower(module));
    DeviceContext device;
    device.handlers = handlers;
    return Execute(*program, std::move(inputs), device);
  });
}

absl::StatusOr<std::vector<Tensor>> EvaluateWithin(const Module& module, std::vector<Tensor> inputs,
                                                   const HandlerRegistry* handlers,
                                                   absl::Duration deadline) {
  return WithinMemory("", [&]() -> absl::StatusOr<std::vector<Tensor>> {
    SHARDCALL_ASSIGN_OR_RETURN(std::shared_ptr<const DeviceProgram> program, Lower(module));
    DeviceContext device;
    device.handlers = handlers;
    device.deadline = deadline;
    return ExecuteWatched(std::move(program), std::move(inputs), device);
  });
}

absl::StatusOr<std::vector<Tensor>> EvaluateGlobally(const Module& module,
                                                     std::vector<Tensor> inputs, int num_devices,
                                                     const HandlerRegistry* handlers,
                                                     absl::Duration deadline) {
  if (num_devices < 1) {
    return ToStatus({.code = "E051",
                     .message = "a program cannot run on fewer than one device",
                     .expected = "1 or more",
                     .found = absl::StrCat(num_devices),
                     .fix = "Give the devices that the module is made for"});
  }
  LowerOptions options;
  options.global_mode = true;
  SHARDCALL_ASSIGN_OR_RETURN(std::shared_ptr<const DeviceProgram> program, Lower(module, options));
  std::vector<std::vector<Tensor>> arguments(num_devices, std::move(inputs));
  SHARDCALL_ASSIGN_OR_RETURN(
      std::vector<std::vector<Tensor>> outputs,
      RunOnThreads(std::move(program), std::move(arguments), num_devices, handlers, deadline));
  return std::move(outputs[0]);
}

absl::StatusOr<absl::optional<Module>> Overlapped(const Module& local,
                                                  const OverlapOptions& schedule) {
  SHARDCALL_ASSIGN_OR_RETURN(PassResult result, MakeOverlap(schedule)->Run(local));
  if (!result.changed) return absl::optional<Module>();
  const absl::Status status = VerifyModule(result.module, "overlapped module");
  if (!status.ok()) {
    return absl::InternalError(
        absl::StrCat("the module with collectives apart does not verify, which is a bug of "
                     "shardcall: ",
                     std::string(status.message())));
  }
  return absl::optional<Module>(std::move(result.module));
}

absl::StatusOr<std::shared_ptr<const DeviceProgram>> LowerLocal(const PartitionedProgram& program,
                                                                const RunOptions& options) {
  SHARDCALL_ASSIGN_OR_RETURN(const PassResult combined,
                             MakeCombinedReductions()->Run(program.local.module));
  const Module& module = combined.changed ? combined.module : program.local.module;
  if (!options.overlap || options.backend == Backend::kNccl) return Lower(module);
  SHARDCALL_RETURN_IF_ERROR(CheckCostModel(options.schedule.cost));
  SHARDCALL_ASSIGN_OR_RETURN(const absl::optional<Module> overlapped,
                             Overlapped(module, options.schedule));
  return Lower(overlapped ? *overlapped : module);
}

absl::StatusOr<std::vector<Tensor>> RunLowered(const PartitionedProgram& program,
                                               std::shared_ptr<const DeviceProgram> lowered,
                                               const std::vector<Tensor>& inputs,
                                               const RunOptions& options) {
  if (lowered == nullptr) {
    return ToStatus({.code = "E310",
                     .message = "there is no program to run",
                     .expected = "what LowerLocal gave",
                     .found = "null",
                     .fix = "Lower the partitioned program first"});
  }
  SHARDCALL_RETURN_IF_ERROR(CheckInputs(program, inputs));
  const int n = static_cast<int>(program.global->program.num_partitions);
  return WithinMemory("", [&]() -> absl::StatusOr<std::vector<Tensor>> {
    SHARDCALL_ASSIGN_OR_RETURN(
        std::vector<std::vector<Tensor>> arguments,
        ShardForDevices(inputs, program.local.parameters, n, PadFill::kPoison));
    SHARDCALL_ASSIGN_OR_RETURN(
        std::vector<std::vector<Tensor>> outputs,
        RunOnThreads(std::move(lowered), std::move(arguments), n, options.handlers,
                     options.deadline, program.global->program.mesh));
    return JoinOutputs(program.local, outputs, options.check_replicas);
  });
}

namespace {

absl::StatusOr<std::vector<Tensor>> RunOnEngine(const PartitionedProgram& program,
                                                const std::vector<Tensor>& inputs,
                                                const RunOptions& options) {
  if (options.engine == nullptr) {
    return ToStatus({.code = "E303",
                     .message = "the pjrt backend needs an engine",
                     .fix = "Pass what MakePjrtEngine gives"},
                    absl::StatusCode::kFailedPrecondition);
  }
  SHARDCALL_RETURN_IF_ERROR(CheckInputs(program, inputs));
  const int n = static_cast<int>(program.global->program.num_partitions);
  SHARDCALL_ASSIGN_OR_RETURN(
      std::vector<std::vector<Tensor>> arguments,
      ShardForDevices(inputs, program.local.parameters, n, PadFill::kPoison));
  absl::optional<Module> precise;
  if (options.full_precision) {
    SHARDCALL_ASSIGN_OR_RETURN(PassResult result, MakeFullPrecision()->Run(program.local.module));
    if (result.changed) precise = std::move(result.module);
  }
  SHARDCALL_ASSIGN_OR_RETURN(
      const std::vector<std::vector<Tensor>> outputs,
      options.engine->Execute(precise ? *precise : program.local.module, std::move(arguments),
                              options.handlers, options.deadline));
  return JoinOutputs(program.local, outputs, options.check_replicas);
}

absl::StatusOr<std::vector<Tensor>> RunOnBackend(const PartitionedProgram& program,
                                                 const std::vector<Tensor>& inputs,
                                                 const RunOptions& options,
                                                 Communicator* communicator) {
  const LocalProgram& local = program.local;
  const int n = static_cast<int>(program.global->program.num_partitions);
  if (options.backend == Backend::kPjrt) return RunOnEngine(program, inputs, options);
  if (options.backend != Backend::kInProcess && communicator == nullptr) {
    const bool nccl = options.backend == Backend::kNccl;
    if (nccl) SHARDCALL_RETURN_IF_ERROR(CheckNcclDevice());
    return ToStatus(
        {.code = "E303",
         .message = absl::StrCat("the ", nccl ? "nccl" : "mpi",
                                 " backend needs a communicator per process"),
         .fix = absl::StrCat("Pass what ", nccl ? "ConnectNccl" : "ConnectMpi", " gives")},
        absl::StatusCode::kFailedPrecondition);
  }
  SHARDCALL_ASSIGN_OR_RETURN(std::shared_ptr<const DeviceProgram> device_program,
                             LowerLocal(program, options));
  if (options.backend == Backend::kInProcess) {
    return RunLowered(program, std::move(device_program), inputs, options);
  }
  SHARDCALL_RETURN_IF_ERROR(CheckInputs(program, inputs));
  SHARDCALL_ASSIGN_OR_RETURN(
      const ProgramIdentity identity,
      IdentityOfRank(program, *device_program, inputs, communicator->rank(), options));
  SHARDCALL_RETURN_IF_ERROR(CheckProgram(*communicator, identity));
  if (options.backend == Backend::kNccl) {
    for (const auto& groups : CollectiveGroups(local.module, n)) {
      SHARDCALL_RETURN_IF_ERROR(communicator->PrepareGroups(groups));
    }
  }
  std::vector<Tensor> arguments;
  for (size_t k = 0; k < inputs.size(); ++k) {
    if (local.parameters[k] == nullptr) {
      arguments.push_back(Tensor::Token());
      continue;
    }
    SHARDCALL_ASSIGN_OR_RETURN(Tensor part, ShardForDevice(inputs[k], *local.parameters[k],
                                                           communicator->rank(), PadFill::kPoison));
    arguments.push_back(std::move(part));
  }
  DeviceContext device;
  device.device = communicator->rank();
  device.num_devices = n;
  // Destroyed before the outputs are exchanged; after a failure, once Abort has ended pending
  // calls. NCCL's calls are made one after another.
  auto started = std::make_shared<StartedCalls>(
      communicator, device_program->has_starts && options.backend == Backend::kMpi);
  device.comm = started->comm();
  device.started = started.get();
  device.mesh = program.global->program.mesh;
  device.handlers = options.handlers;
  device.deadline = options.deadline;
  device.at = &ComputingOverMpi();
  // Ranks agree on the run number without communicating, since all make the same runs over the
  // communicator. Runs that a rank evaluates alone are numbered separately.
  static std::atomic<int64_t> runs{0};
  device.run_id = (int64_t{1} << 32) + ++runs;
  absl::StatusOr<std::vector<Tensor>> mine =
      ExecuteWatched(std::move(device_program), std::move(arguments), device, started,
                     [&](const absl::Status& status) { communicator->Abort(status); });
  if (!mine.ok()) {
    communicator->Abort(mine.status());
    return mine.status();
  }
  started.reset();
  SHARDCALL_ASSIGN_OR_RETURN(std::vector<std::vector<Tensor>> all,
                             ExchangeOutputs(*std::move(mine), *communicator));
  return JoinOutputs(program.local, all, options.check_replicas);
}

}  // namespace

absl::StatusOr<std::vector<Tensor>> RunPartitioned(const PartitionedProgram& program,
                                                   const std::vector<Tensor>& inputs,
                                                   const RunOptions& options,
                                                   Communicator* communicator) {
  return WithinMemory("", [&] { return RunOnBackend(program, inputs, options, communicator); });
}

}  // namespace shardcall
