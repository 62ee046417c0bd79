// SPDX-License-Identifier: Apache-2.0
// Handles the programs that a framework passes to the wrapped plugin: one for several devices is
// partitioned here, and its per-device module is compiled instead.
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

namespace shardcall {
inline namespace internal {
namespace pjrt {

// PJRT_Program with its serialised CompileOptionsProto.
struct FrameworkProgram {
  absl::string_view format;  // "mlir" or "hlo"
  absl::string_view code, options;
};

// The replacement that the wrapped plugin compiles, of format "hlo".
struct Replacement {
  std::string code, options;
  std::unique_ptr<PartitionedProgram> program;  // for reports
};
// The program is passed on unchanged. `why` is empty if there is nothing to partition.
struct PassedThrough {
  std::string why;
};

struct TakeOverContext {
  const Plugin* plugin;
  const Converter* converter;
  std::string platform;  // PJRT's: "cpu", "cuda"
  const Registry* registry;
  std::vector<std::string> allow_replicate;
  // Targets whose handlers the framework has registered.
  absl::flat_hash_set<std::string> framework_handlers;
};

// Errors: those of ToHlo, of reading and verifying HLO, of Partition; E148 if the plugin refuses a
// handler.
absl::StatusOr<absl::variant<PassedThrough, Replacement>> TakeOver(const FrameworkProgram& program,
                                                                   const TakeOverContext& context);

}  // namespace pjrt
}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_BINDINGS_PJRT_WRAPPER_TAKE_OVER_H_
