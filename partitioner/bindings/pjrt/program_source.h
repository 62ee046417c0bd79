// SPDX-License-Identifier: Apache-2.0
#ifndef SHARDCALL_PARTITIONER_BINDINGS_PJRT_PROGRAM_SOURCE_H_
#define SHARDCALL_PARTITIONER_BINDINGS_PJRT_PROGRAM_SOURCE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "shardcall/kernels/ffi/handler.h"
#include "shardcall/partitioner/bindings/pjrt/pjrt_plugin.h"
#include "shardcall/partitioner/ir/module.h"
#include "shardcall/partitioner/runtime/tensor.h"

namespace shardcall {
inline namespace internal {
namespace pjrt {

// The input of a plugin's compiler, and the parameters and results of its program.
struct ProgramSource {
  struct Leaf {
    ElementType type;
    Dims dims;
    std::vector<int64_t> minor_to_major;  // empty: the plugin's default
  };
  std::string code;                       // a serialised HloModuleProto
  std::string options;                    // a serialised CompileOptionsProto
  std::vector<Leaf> parameters, results;  // flat
};

// The module that each of these devices runs, unchanged: XLA's own sharding passes are off. The
// handlers of `handlers` (null: none) for the targets of its calls and the platform are registered
// with the plugin; a process has one per target. E336 for programs that PJRT cannot run: a tuple
// among several parameters, or unsupported element types. E148 if the plugin refuses a handler.
absl::StatusOr<ProgramSource> MakeProgramSource(const Plugin& plugin, absl::string_view platform,
                                                absl::Span<const int64_t> device_ids,
                                                const Module& local,
                                                const HandlerRegistry* handlers);

}  // namespace pjrt
}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_BINDINGS_PJRT_PROGRAM_SOURCE_H_
