// SPDX-License-Identifier: Apache-2.0
// A framework's program on its way to the wrapped plugin: one for several devices is
// partitioned here, and its per-device module compiled in its place.
#ifndef SHARDCALL_PARTITIONER_BINDINGS_PJRT_WRAPPER_TAKE_OVER_H_
#define SHARDCALL_PARTITIONER_BINDINGS_PJRT_WRAPPER_TAKE_OVER_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/variant.h"
#include "shardcall/partitioner/api/partition.h"
#include "shardcall/partitioner/bindings/pjrt/to_hlo.h"
#include "shardcall/partitioner/bindings/xla/registration.h"

namespace shardcall::pjrt {

// PJRT_Program with the serialised CompileOptionsProto that comes with it.
struct FrameworkProgram {
  absl::string_view format;  // "mlir" or "hlo"
  absl::string_view code, options;
};

// What the wrapped plugin gets in its place, of format "hlo".
struct Replacement {
  std::string code, options;
  std::unique_ptr<PartitionedProgram> program;  // for reports
};
// The program goes on as it is. `why` is empty where there is nothing to partition.
struct PassedThrough {
  std::string why;
};

struct TakeOverContext {
  const Plugin* plugin;
  const Converter* converter;
  std::string platform;  // PJRT's: "cpu", "cuda"
  const Registry* registry;
  std::vector<std::string> allow_replicate;
  // Targets whose handlers the framework has registered itself.
  absl::flat_hash_set<std::string> framework_handlers;
};

// Errors: those of ToHlo, of reading and verifying HLO, of Partition, E148 where the
// plugin refuses a handler.
absl::StatusOr<absl::variant<PassedThrough, Replacement>> TakeOver(const FrameworkProgram& program,
                                                                   const TakeOverContext& context);

}  // namespace shardcall::pjrt

#endif  // SHARDCALL_PARTITIONER_BINDINGS_PJRT_WRAPPER_TAKE_OVER_H_
