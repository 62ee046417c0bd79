// SPDX-License-Identifier: Apache-2.0
// Running a module over N devices: partition, cut the inputs, execute on a
// backend, put the outputs together.
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
  // Of every wait for another device, and of every handler (E319).
  absl::Duration deadline = absl::Seconds(60);
  const HandlerRegistry* handlers = nullptr;  // not owned
  Engine* engine = nullptr;                   // of kPjrt, not owned
  bool check_replicas = false;                // E321 where copies of a part differ
  // Collectives go on while the devices compute, where there is something to
  // compute. Results have the same bits. Not with NCCL.
  bool overlap = true;
  OverlapOptions schedule = {};
};

// The plain evaluator: one device, annotations ignored.
absl::StatusOr<std::vector<Tensor>> Evaluate(const Module& module, std::vector<Tensor> inputs,
                                             const HandlerRegistry* handlers);
// The same where a handler may take no longer than `deadline` (E319).
absl::StatusOr<std::vector<Tensor>> EvaluateWithin(const Module& module, std::vector<Tensor> inputs,
                                                   const HandlerRegistry* handlers,
                                                   absl::Duration deadline);
// The unpartitioned module on N devices with whole arrays: manual regions run
// once per device on its slices, the devices meet in their collectives.
absl::StatusOr<std::vector<Tensor>> EvaluateGlobally(const Module& module,
                                                     std::vector<Tensor> inputs, int num_devices,
                                                     const HandlerRegistry* handlers,
                                                     absl::Duration deadline);
bool HasManualRegion(const Module& module);

// The module with collectives started early and awaited late (pass/overlap.h), or
// none where nothing is to be gained.
absl::StatusOr<absl::optional<Module>> Overlapped(const Module& local,
                                                  const OverlapOptions& schedule = {});

// A partitioned program over its devices. With MPI every rank calls and gets all
// outputs; `communicator` is then its connection (else null). Global inputs and
// outputs. A handler that does not return is left behind with all that it uses (E319;
// with MPI or NCCL the job is aborted, and the communicator must stay).
absl::StatusOr<std::vector<Tensor>> RunPartitioned(const PartitionedProgram& program,
                                                   const std::vector<Tensor>& inputs,
                                                   const RunOptions& options,
                                                   Communicator* communicator);
// What a device executes under these options.
absl::StatusOr<std::shared_ptr<const DeviceProgram>> LowerLocal(const PartitionedProgram& program,
                                                                const RunOptions& options);
// The same on threads, with the local module lowered before. E313 where the
// inputs are not the program's parameters.
absl::StatusOr<std::vector<Tensor>> RunLowered(const PartitionedProgram& program,
                                               std::shared_ptr<const DeviceProgram> lowered,
                                               const std::vector<Tensor>& inputs,
                                               const RunOptions& options);

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_API_RUN_H_
