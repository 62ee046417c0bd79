// SPDX-License-Identifier: Apache-2.0
// What another runtime of XLA's typed FFI, a PJRT plugin or jaxlib's own client, is given to
// run the custom calls of a per-device module with.
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
  std::string name, platform;      // as kernels/ffi/platform.h has it
  const void* function = nullptr;  // XLA_FFI_Handler, for execution; lives as long as the process
};
struct ExportedCalls {
  std::vector<ExportedTarget> targets;
  // Calls, by id, that are to be made as typed ones of another target, since such a runtime
  // takes no others: those of an untyped ABI, or of a handler for one backend_config.
  absl::flat_hash_map<uint32_t, std::string> renamed;
};

// What `handlers` has for the custom calls of `local` and a platform, by
// kernels/ffi/platform.h: "cpu" has those for Host. A library's own function where that is
// all there is, else one that calls the entry. Targets that the registry does not know are
// left to the runtime, which has some of its own; so are those in `known`. E140 where all
// functions to export are taken.
absl::StatusOr<ExportedCalls> ExportCalls(const Module& local, absl::string_view platform,
                                          int num_devices, const HandlerRegistry& handlers,
                                          const absl::flat_hash_set<std::string>& known = {});

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_BINDINGS_XLA_EXPORTED_CALLS_H_
