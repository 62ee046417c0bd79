// SPDX-License-Identifier: Apache-2.0
// Programs of frameworks such as JAX, which pass beside the program the number of devices and the
// shardings that may be chosen, and which do not support uneven shards.
#ifndef SHARDCALL_PARTITIONER_BINDINGS_XLA_FRAMEWORK_PROGRAM_H_
#define SHARDCALL_PARTITIONER_BINDINGS_XLA_FRAMEWORK_PROGRAM_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "shardcall/partitioner/api/partition.h"
#include "shardcall/partitioner/bindings/xla/registration.h"
#include "shardcall/sharding/base/public.h"
#include "shardcall/sharding/hlo_sharding.h"

namespace shardcall SHARDCALL_PUBLIC {

struct FrameworkRequest {
  int64_t num_partitions = 1;
  // By flat leaf, or one for all: whether its sharding is open. Empty: as in the program.
  std::vector<bool> open_parameters = {}, open_results = {};
  std::string platform = "Host";       // of kernels/ffi/platform.h
  const Registry* registry = nullptr;  // not owned, outlives the result
  std::vector<std::string> allow_replicate = {};
  std::optional<ConflictOrder> conflicts = std::nullopt;  // as PartitionOptions has it
  SpmdOptions spmd = {};
  // Called with the program as it was read.
  std::function<void(const Module& module)> observe = {};
};

// Partitions a serialised HloModuleProto, or StableHLO as bytecode, that the framework in this
// process has just made: callbacks whose addresses it contains (inspect_sharding.h) are called. An
// open leaf is over whole mesh axes that divide its dimensions. Errors: those of reading and
// verifying HLO, of ReadStablehloBytecode, of LowerCalls, of Partition.
absl::StatusOr<std::unique_ptr<PartitionedProgram>> PartitionForFramework(
    absl::string_view bytes, const FrameworkRequest& request);

// The shardings of the global arrays, in the form that a framework reads. E164 for a sharding that
// HLO cannot express.
struct HeldShardings {
  std::vector<HloSharding> parameters;  // by flat leaf
  HloSharding result;                   // a tuple where the root is one
};
absl::StatusOr<HeldShardings> ShardingsHeld(const LocalProgram& local);

}  // namespace shardcall

namespace shardcall {
inline namespace internal {

// Opens these edges of a program, as in FrameworkRequest.
void SetOpen(const std::vector<bool>& parameters, const std::vector<bool>& results,
             ModuleHeader* header);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_BINDINGS_XLA_FRAMEWORK_PROGRAM_H_
