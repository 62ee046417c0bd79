// SPDX-License-Identifier: Apache-2.0
// Runs a module over N devices: partitions it, shards the inputs, executes on a backend, and
// assembles the outputs.
//
// Any threads may call the functions that run, with one program, one set of options and the same
// inputs. A Communicator and an Engine are for one call at a time, as their headers say.
#ifndef SHARDCALL_PARTITIONER_API_RUN_H_
#define SHARDCALL_PARTITIONER_API_RUN_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "shardcall/collectives/communicator.h"
#include "shardcall/kernels/ffi/handler.h"
#include "shardcall/partitioner/api/engine.h"
#include "shardcall/partitioner/api/partition.h"
#include "shardcall/partitioner/api/program_io.h"
#include "shardcall/partitioner/pass/overlap.h"
#include "shardcall/partitioner/runtime/program.h"
#include "shardcall/partitioner/runtime/tensor.h"
#include "shardcall/sharding/base/public.h"

namespace shardcall SHARDCALL_PUBLIC {

enum class Backend { kInProcess, kMpi, kNccl, kPjrt };
absl::StatusOr<Backend> BackendFromName(absl::string_view name);  // E330

struct RunOptions {
  PartitionOptions partition = {};
  Backend backend = Backend::kInProcess;
  // Limit of every wait for another device, and of every handler (E319).
  absl::Duration deadline = absl::Seconds(60);
  const HandlerRegistry* handlers = nullptr;  // not owned
  Engine* engine = nullptr;                   // of kPjrt, not owned
  bool check_replicas = false;                // E321 if replicas of an output shard differ
  // With kPjrt: products of f32 that state no precision have that of f32, and not, as on XLA's
  // GPUs, that of TF32.
  bool full_precision = false;
  // With MPI and NCCL: each rank gives arrays of which only its own shards hold values. Ranks that
  // hold the same shard must still give the same bytes for it. Otherwise all ranks must give the
  // same arrays. E308 if they do not.
  bool own_shards_only = false;
  // Make collectives asynchronous, so that devices compute meanwhile, where there is enough to
  // compute. Results are bitwise the same. Not with NCCL.
  bool overlap = true;
  OverlapOptions schedule = {};
};

// The plain evaluator: one device, sharding annotations ignored.
absl::StatusOr<std::vector<Tensor>> Evaluate(const Module& module, std::vector<Tensor> inputs,
                                             const HandlerRegistry* handlers);
// The same, with a limit `deadline` for each handler (E319).
absl::StatusOr<std::vector<Tensor>> EvaluateWithin(const Module& module, std::vector<Tensor> inputs,
                                                   const HandlerRegistry* handlers,
                                                   absl::Duration deadline);
// Runs the unpartitioned module on N devices with whole arrays: each device runs manual regions on
// its own slices, and their collectives connect the devices.
absl::StatusOr<std::vector<Tensor>> EvaluateGlobally(const Module& module,
                                                     std::vector<Tensor> inputs, int num_devices,
                                                     const HandlerRegistry* handlers,
                                                     absl::Duration deadline);
bool HasManualRegion(const Module& module);

// The module with asynchronous collectives (pass/overlap.h), or none where none would gain time.
absl::StatusOr<absl::optional<Module>> Overlapped(const Module& local,
                                                  const OverlapOptions& schedule = {});

// Runs a partitioned program over its devices; inputs and outputs are global. With MPI and NCCL
// every rank calls this with its `communicator` (else null) and gets all outputs. A handler that
// does not return is abandoned along with everything it uses (E319; with MPI or NCCL the job is
// aborted, and the communicator must stay alive).
absl::StatusOr<std::vector<Tensor>> RunPartitioned(const PartitionedProgram& program,
                                                   const std::vector<Tensor>& inputs,
                                                   const RunOptions& options,
                                                   Communicator* communicator);
// The program that a device executes under these options.
absl::StatusOr<std::shared_ptr<const DeviceProgram>> LowerLocal(const PartitionedProgram& program,
                                                                const RunOptions& options);
// Runs on threads a local module that was lowered before. E313 where the inputs do not match the
// program's parameters.
absl::StatusOr<std::vector<Tensor>> RunLowered(const PartitionedProgram& program,
                                               std::shared_ptr<const DeviceProgram> lowered,
                                               const std::vector<Tensor>& inputs,
                                               const RunOptions& options);

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_API_RUN_H_
