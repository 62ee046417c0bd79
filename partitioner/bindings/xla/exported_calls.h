// SPDX-License-Identifier: Apache-2.0
// Functions with which another runtime of XLA's typed FFI, a PJRT plugin or jaxlib's own client,
// can run the custom calls of a per-device module.
#ifndef SHARDCALL_PARTITIONER_BINDINGS_XLA_EXPORTED_CALLS_H_
#define SHARDCALL_PARTITIONER_BINDINGS_XLA_EXPORTED_CALLS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "shardcall/kernels/ffi/handler.h"
#include "shardcall/partitioner/ir/module.h"
#include "shardcall/sharding/base/public.h"

namespace shardcall SHARDCALL_PUBLIC {

struct ExportedTarget {
  std::string name, platform;      // by kernels/ffi/platform.h
  const void* function = nullptr;  // XLA_FFI_Handler, for execution; lives as long as the process
};
struct ExportedCalls {
  std::vector<ExportedTarget> targets;
  // Calls, by id, that must become typed ones of another target, since such a runtime accepts no
  // others: those of an untyped ABI, or of a handler for one backend_config.
  absl::flat_hash_map<uint32_t, std::string> renamed;
};

// The functions of `handlers` for the custom calls of `local` and a platform, by
// kernels/ffi/platform.h: "cpu" uses those for Host. A library's own function is used directly if
// it is the whole handler, else a function that calls the entry. Targets that the registry does
// not know are left to the runtime, which has some of its own; so are those in `known`. E140 if
// all functions to export are in use.
absl::StatusOr<ExportedCalls> ExportCalls(const Module& local, absl::string_view platform,
                                          int num_devices, const HandlerRegistry& handlers,
                                          const absl::flat_hash_set<std::string>& known = {});

// Calls of targets for which the runtime's own XLA has a partitioner: it asks that one for each of
// them, also for one that was partitioned already, whose operands are shards. Under another name
// they stay as they stand.
struct RenamedTarget {
  std::string target, name;
};
// Renames those of the targets `asked` in `module`, in the functions of `calls`, too. The result
// lists the targets in `known`, whose functions the runtime must also have under the new name. A
// target without a function keeps its name.
std::vector<RenamedTarget> RenamePartitioned(const absl::flat_hash_set<std::string>& asked,
                                             const absl::flat_hash_set<std::string>& known,
                                             Module* module, ExportedCalls* calls);

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_BINDINGS_XLA_EXPORTED_CALLS_H_
